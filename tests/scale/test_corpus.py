"""Shards of all formats become pieces; what was done before an interruption is not done again."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from wgcn.base.errors import InputError
from wgcn.scale import corpus as module
from wgcn.scale.corpus import find_shards, tokenise_shard
from wgcn.scale.store import open_work
from wgcn.text.corpus import Tokens

TEXTS = ["Red wine, and bread!", "white wine", "", "a red rose", "a white rose"] * 4
LABELS = ["drink", "drink", None, "flower", "flower"] * 4


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """The same texts in four formats."""
    rows = list(zip(TEXTS, LABELS, strict=True))
    (tmp_path / "a.csv").write_text("text,label\n" + "".join(f'"{text}",{label or ""}\n' for text, label in rows))
    lines = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "c.json").write_text("[" + ",".join(lines.splitlines()) + "]")
    (tmp_path / "d.tsv").write_text("text\tlabel\n" + "".join(f"{text}\t{label or ''}\n" for text, label in rows))
    return sorted(tmp_path.iterdir())


@pytest.mark.parametrize("characters", [1, 30, 1 << 20])
def test_pieces_have_the_tokens_and_labels_of_their_shards(files: list[Path], characters: int, tmp_path: Path) -> None:
    shards = find_shards(files, label_column="label")
    expected = Tokens.from_texts(TEXTS, "words")
    with open_work(tmp_path / "work", {}, []) as work:
        for number, shard in enumerate(shards):
            pieces = tokenise_shard((number, shard), work, "words", characters)
            assert [piece.is_last for piece in pieces] == [False] * (len(pieces) - 1) + [True]
            assert {piece.shard for piece in pieces} == {number}
            assert [label for piece in pieces for label in piece.labels(work)] == LABELS
            words = [piece.words(work)[i] for piece in pieces for i in piece.ids(work).tolist()]
            assert words == [expected.words[i] for i in expected.ids.tolist()]
            lengths = np.concatenate([np.diff(piece.offsets(work)) for piece in pieces])
            np.testing.assert_array_equal(lengths, np.diff(expected.offsets))
            found = [
                (own.counts(work)[:, own.words(work).index("wine")]) for own in pieces if "wine" in own.words(work)
            ]
            assert np.sum(found, axis=0).tolist() == [8, 8]  # as often, and in as many documents


def test_pieces_that_are_done_are_not_tokenised_again(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, begun = (0, *find_shards(files[:1])), list[str]()

    class Logged(module.Outputs):
        def __init__(self, work: object, task: str) -> None:
            begun.append(task)
            if len(begun) == 3:
                raise KeyboardInterrupt
            super().__init__(work, task)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "Outputs", Logged)
    with open_work(tmp_path / "work", {}, []) as work:
        with pytest.raises(KeyboardInterrupt):
            tokenise_shard(given, work, "words", 60)
        pieces = tokenise_shard(given, work, "words", 60)
        assert len(begun) == len(pieces) + 1
        assert begun[2] == begun[3] == pieces[2].name
        assert sum(piece.n_documents for piece in pieces) == len(TEXTS)
        assert tokenise_shard(given, work, "words", 60) == pieces
        assert len(begun) == len(pieces) + 1


def test_what_is_wrong_with_a_file_is_said_before_any_work(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column 'kind'"):
        find_shards(files, label_column="kind")
    (tmp_path / "semicolons.csv").write_text("text;label\na;b\n")
    find_shards([tmp_path / "semicolons.csv"], label_column="label")  # which warns when it is read, and not before
    with pytest.raises(InputError, match="There is no file"):
        find_shards([*files, tmp_path / "z.txt"])
    with pytest.raises(InputError, match="Standard input cannot be read out of core"):
        find_shards(["-"], {"format": "txt"})
    with pytest.raises(InputError, match="no files"):
        find_shards([])
