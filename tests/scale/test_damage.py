"""Damaged work folders: a build goes on to the same result, or says in one of the package's errors what is wrong."""

import json
import os
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wgcn.base.errors import WGCNError
from wgcn.graph.association import EdgeRules
from wgcn.scale import build as module
from wgcn.scale.build import Resources, graph_from_files
from wgcn.scale.files import fit_files
from wgcn.scale.workers import Limits

VALUES = "null", "true", "0", "-1", "1e999", "NaN", "9" * 30, "9" * 5000, '"x"', "[]", "{}", "[[1]]", "[" * 100_000
Damage = Callable[[Path, random.Random], object]


def cut(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(max(path.stat().st_size, 1)))


def flip(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes() or b"x")
    content[chance.randrange(len(content))] ^= chance.randrange(1, 256)
    path.write_bytes(content)


def grow(path: Path, chance: random.Random) -> None:
    os.truncate(path, path.stat().st_size + 10 ** chance.randrange(13))  # sparse


def other_json(path: Path, chance: random.Random) -> None:
    path.write_text(chance.choice(VALUES))


def other_value(path: Path, chance: random.Random) -> None:
    """Replace one value of a record, at any depth, or drop it."""
    try:
        document = json.loads(path.read_bytes())
    except ValueError:  # it is no record
        other_json(path, chance)
        return
    place: Any = document
    while True:
        key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if not (isinstance(place[key], dict | list) and place[key]) or chance.random() < 0.3:
            break
        place = place[key]
    if chance.random() < 0.3:
        del place[key]
    else:
        place[key] = "here"
    path.write_text(json.dumps(document).replace('"here"', chance.choice(VALUES)))


def instead(make: Callable[[Path], object]) -> Damage:
    def replace(path: Path, _: random.Random) -> None:
        path.unlink()
        make(path)

    return replace


def folder(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_text("x")


def link(path: Path) -> None:
    """Lead to a file that is not to be touched."""
    path.symlink_to(path.parents[2] / "precious")


DAMAGES: dict[str, Damage] = {
    "cut": cut,
    "flip": flip,
    "grow": grow,
    "other JSON": other_json,
    "other value": other_value,
    "mode": lambda path, _: path.chmod(0),
    "gone": instead(lambda path: None),
    "folder": instead(folder),
    "pipe": instead(os.mkfifo),
    "link": instead(link),
    "loop": instead(lambda path: path.symlink_to(path)),
}


GUARDS = "build.json", "wgcn-build.lock"  # which say that a folder is that of this build


def kinds_of(work: Path) -> dict[str, list[Path]]:
    """Return the files of a work folder by what they are: names without digits and digests."""
    kinds: dict[str, list[Path]] = {}
    for path in sorted(path for path in work.rglob("*") if path.is_file()):
        name = re.sub(r"-[0-9a-f]{12}|-\d+", "", str(path.relative_to(work)))
        kinds.setdefault(name, []).append(path.relative_to(work))
    return kinds


def check_damages(work: Path, resume: Callable[[Path], Any], expected: Any, seed: int) -> None:
    """Damage each kind of file in each way, and go on: those that name the build alone, others a dozen at a time."""
    chance = random.Random(seed)
    kinds = kinds_of(work)
    alone = [[([Path(guard)], name)] for guard in GUARDS for name in DAMAGES]
    pairs = [(paths, name) for kind, paths in kinds.items() if kind not in GUARDS for name in DAMAGES]
    chance.shuffle(pairs)
    precious, outcomes = work.parent / "precious", list[str]()
    precious.write_text("precious")
    for group in [*alone, *(pairs[i : i + 12] for i in range(0, len(pairs), 12))]:
        hurt = work.with_name("hurt")
        shutil.copytree(work, hurt)
        done: dict[Path, str] = {}
        for paths, name in group:
            path = hurt / chance.choice(paths)
            if path not in done:
                DAMAGES[name](path, chance)
                done[path] = name
        try:
            assert resume(hurt) == expected, done
            outcomes.append("went on")
        except WGCNError as error:
            outcomes.append(str(error))
        except Exception as error:
            raise AssertionError(done) from error
        assert precious.read_text() == "precious", done
        shutil.rmtree(hurt, ignore_errors=True)
    said = [each for each in outcomes if each != "went on"]
    assert len(outcomes) > len(said) + len(pairs) / 24
    assert said
    assert all(re.search(r"--restart|--work|Choose another place|cannot be written", each) for each in said)


def test_a_graph_goes_on_from_a_damaged_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limits, "of", lambda *_: Limits(characters=2_000, tokens=300, merged=2_000, fan_in=3))
    files = [tmp_path / f"{number}.txt" for number in range(2)]
    chance = random.Random(0)
    for file in files:
        file.write_text("".join(" ".join(f"w{int(90 ** chance.random())}" for _ in range(9)) + "\n" for _ in range(60)))

    def build(work: Path, **options: Any) -> str:
        shutil.rmtree(tmp_path / "g", ignore_errors=True)
        graph_from_files(files, tmp_path / "g", Resources("4GB", None, 1, work, **options), edges=EdgeRules(top_k=5))
        return str(json.loads((tmp_path / "g" / "config.json").read_bytes())["digest"])

    expected = build(tmp_path / "w", keep=True)
    assert len(kinds_of(tmp_path / "w")) >= 20
    check_damages(tmp_path / "w", build, expected, seed=1)


QUICK = {"tune": False}  # choosing settings is done in memory, and damages nothing


def test_a_fit_goes_on_from_a_damaged_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = replace(Limits.of(2 * 10**9, 1), partitions=2, partition_tokens=(100, 10_000))
    monkeypatch.setattr(Limits, "of", lambda *_: limits)
    chance, file = random.Random(0), tmp_path / "a.csv"
    words = [[f"{chance.choice(['ab'[i % 2], 'x'])}{chance.randrange(40)}" for _ in range(6)] for i in range(160)]
    rows = [f"{'ab'[i % 2]},{' '.join(own)}" for i, own in enumerate(words)]
    file.write_text("\n".join(["label,text", *rows, ""]))

    def fit(work: Path) -> bytes:
        return fit_files([file], memory="2GB", n_workers=1, work=work, **QUICK).scorer.word_embeddings.tobytes()

    with monkeypatch.context() as patch:
        patch.setattr(module, "remove_work", lambda _: None)
        expected = fit(tmp_path / "w")
    assert len(kinds_of(tmp_path / "w")) >= 20
    check_damages(tmp_path / "w", fit, expected, seed=2)
