"""Models for the browser: the table, the package and the page, and JavaScript that gives the same bits."""

import base64
import gzip
import hashlib
import json
import os
import random
import re
import runpy
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgcn import TextModel
from wgcn.base.errors import InputError
from wgcn.browser.export import as_page, as_table, check_package, export_model, write_package
from wgcn.cli import main

HERE = Path(__file__).parent
DAMAGED = "The model is damaged or incomplete. Copy the file or export the model again."
VECTORS = json.loads((HERE / "vectors.json").read_text())
MAKE = runpy.run_path(str(HERE / "make_vectors.py"))
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs node, which is not installed")


@pytest.fixture(scope="module")
def models() -> dict[str, TextModel]:
    return {name: MAKE["made"](name) for name in VECTORS["models"]}


@pytest.fixture(scope="module")
def packages(models: dict[str, TextModel], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    for name, model in models.items():
        write_package(model, folder / name)
    return folder


def in_node(vectors: Path, packages: Path) -> Any:
    assert NODE is not None
    done = subprocess.run([NODE, HERE / "check.mjs", vectors, packages], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_like(given: Any, expected: Any, where: str) -> None:
    if isinstance(expected, dict):
        assert given.keys() == expected.keys(), where
        for key, value in expected.items():
            assert_like(given[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(given) == len(expected), where
        for i, value in enumerate(expected):
            assert_like(given[i], value, f"{where}[{i}]")
    else:
        assert given == (pytest.approx(expected, abs=1e-6) if isinstance(expected, float) else expected), where


def test_python_says_what_the_vectors_say(models: dict[str, TextModel]) -> None:
    assert_like(json.loads(json.dumps(MAKE["vectors"]())), VECTORS, "vectors")


@needs_node
def test_node_says_what_the_vectors_say(packages: Path) -> None:
    assert in_node(HERE / "vectors.json", packages) == {name: [] for name in VECTORS["models"]}


@needs_node
def test_scores_of_random_texts_have_the_same_bits(
    models: dict[str, TextModel], packages: Path, tmp_path: Path
) -> None:
    chance = random.Random(0)
    alphabet = [
        *"abeinrsw  ''Σσς’İßẞ\u0301\u200d\ufe0f\u20e3👍👩💻🏽🇫🇷年我ไทยが\u3099\ud800\udc00½_7.,!?()A.\u00ad𐐀\u0345"
    ]
    words = [word for text in VECTORS["texts"] for word in text.split()]
    texts = ["".join(chance.choices(alphabet, k=chance.randrange(60))) for _ in range(300)]
    # Two halves of a character beside each other are one character in JavaScript.
    texts = [text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") for text in texts]
    texts += [" ".join(chance.choices(words, k=chance.randrange(200))) for _ in range(100)]
    given = tmp_path / "texts.json"
    given.write_text(json.dumps({"texts": texts, "models": dict.fromkeys(models, True)}))
    found = in_node(given, packages)
    for name, model in models.items():
        scores = model.scores(texts)
        same = np.array(found[name], np.float32) == scores
        if model.scorer.class_weights is None:
            assert same.all(), [texts[i] for i in np.flatnonzero(~same.all(axis=1))[:3]]
        else:  # a product of matrices adds up in an order of its own
            assert np.allclose(found[name], scores, atol=1e-6)


@needs_node
@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("TextModel.fromBuffer(new ArrayBuffer(4))", "This is not a model that `wgcn export` wrote."),
        ("TextModel.fromBuffer(newer)", "This script reads models of format 2, not 9. Export again."),
        ("TextModel.fromBuffer(bytes.subarray(0, 5000))", DAMAGED),
        ("TextModel.fromBuffer(bytes.subarray(0, -8))", DAMAGED),
        ("bytes[20] ^= 1; TextModel.fromBuffer(bytes)", DAMAGED),
        ("bytes.fill(255, -2000, -1000); TextModel.fromBuffer(bytes)", DAMAGED),
        ("bytes.copyWithin(4000, 4004, 5000); TextModel.fromBuffer(bytes.buffer)", DAMAGED),
        (
            "TextModel.fromBuffer('model.bin')",
            "A model is read from an ArrayBuffer or from bytes, such as the content of model.bin.",
        ),
        (
            "const odd = new Uint8Array(bytes.length + 1); odd.set(bytes, 1); "
            "throw new Error(TextModel.fromBuffer(odd.subarray(1)).classes.join())",
            "drink,drive,<i>other</i>",
        ),
        ("words.predict(7)", "A text must be a string, got number."),
        ("words.explain(undefined)", "A text must be a string, got undefined."),
        ("words.predict('a', { abstain: 2 })", "abstain must be above 0 and below 1, got 2."),
        ("words.predictSet('a', 0.999)", "The model has no sets of labels with coverage 0.999: it may be too high."),
        ("words.explain('a').top('none')", 'There is no class "none".'),
        ("tags.predict('a', { abstain: 0.5 })", "Answers are left out only by models that give one label per text."),
        (
            "tags.outOfScope('a')",
            "The model cannot tell what is out of scope: too few texts were held out of training.",
        ),
    ],
)
def test_errors_say_what_is_wrong(packages: Path, expression: str, message: str) -> None:
    assert NODE is not None
    script = """
        const [folder, expression] = process.argv.slice(1);
        const { load, TextModel } = await import(`${folder}/words/index.js`);
        const words = await load(), tags = await load(`file://${folder}/tags/model.bin`);
        const { readFile } = await import("node:fs/promises");
        const bytes = new Uint8Array(await readFile(`${folder}/words/model.bin`));
        const newer = new ArrayBuffer(16);
        new Uint8Array(newer).set([87, 71, 67, 78, 9]);
        try {
            const given = { TextModel, words, tags, newer, bytes };
            new Function(...Object.keys(given), expression)(...Object.values(given));
        } catch (error) {
            process.stdout.write(error.message);
        }
    """
    command = [NODE, "--input-type=module", "-e", script, packages.as_posix(), expression]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == (message, "")


def test_the_table_is_the_same_bytes_each_time_and_aligned(models: dict[str, TextModel]) -> None:
    content = as_table(models["words"])
    assert content == as_table(MAKE["made"]("words"))
    version, size = np.frombuffer(content[4:12], "<u4").tolist()
    header = json.loads(content[12 : 12 + size])
    assert (content[:4], version, (12 + size) % 8) == (b"WGCN", 2, 0)
    assert all(offset % 8 == 0 for _, _, offset in header["arrays"].values())
    kind, shape, offset = header["arrays"]["table"]
    table = np.frombuffer(content[12 + size + offset :], "<f4", shape[0] * shape[1]).reshape(shape)
    assert kind == "f4"
    assert np.array_equal(table, models["words"].scorer.word_embeddings)


def test_what_a_browser_cannot_do_is_an_error(models: dict[str, TextModel]) -> None:
    own = TextModel(str.split, (1, 1), *(getattr(models["tags"], part) for part in ("vocabulary", "weighting")),
                    models["tags"].scorer, models["tags"].classes)  # fmt: skip
    with pytest.raises(InputError, match="tokenizer of your own cannot be exported"):
        as_table(own)
    damaged = MAKE["made"]("tags")
    damaged.scorer.word_embeddings[0, 0] = np.nan
    with pytest.raises(InputError, match="weights that are no finite numbers"):
        as_table(damaged)


def test_labels_that_javascript_cannot_count_become_text() -> None:
    model = MAKE["made"]("characters")
    model.classes[0] = 2**60
    content = as_table(model)
    assert json.loads(content[12 : 12 + int.from_bytes(content[8:12], "little")])["classes"] == [str(2**60), "-3"]


def test_bundlers_for_browsers_meet_no_module_of_node(packages: Path) -> None:
    """webpack and esbuild end with an error at `import("node:...")`; webpack warns of a URL made of a variable."""
    script = (packages / "words" / "index.js").read_text()
    assert not re.search(r"""(import|from)\s*\(?\s*["']node:""", script)
    assert re.findall(r"new URL\((.*), import\.meta\.url\)", script) == ['"./model.bin"']


def test_the_package_is_what_npm_publishes(packages: Path) -> None:
    package = json.loads((packages / "text_gcn" / "package.json").read_text())
    assert package["name"] == "text-gcn"
    assert package["type"] == "module"
    for name in ("index.js", "index.d.ts", "wgcn.js", "wgcn.d.ts", "model.bin"):
        assert name in package["files"]
        assert (packages / "text_gcn" / name).is_file()
    assert 'import { load } from "text-gcn"' in (packages / "text_gcn" / "README.md").read_text()


def test_the_distribution_has_the_scripts_and_the_page() -> None:
    builders = pytest.importorskip("hatchling.builders.wheel", reason="needs hatchling")
    included = {file.distribution_path for file in builders.WheelBuilder(str(HERE.parents[1])).recurse_included_files()}
    static = HERE.parents[1] / "src" / "wgcn" / "browser" / "static"
    assert {f"wgcn/browser/static/{file.name}" for file in static.iterdir()} <= included


def test_a_package_replaces_an_earlier_one_but_no_other_folder(models: dict[str, TextModel], tmp_path: Path) -> None:
    write_package(models["words"], tmp_path / "p")
    (tmp_path / "p" / "mine.txt").write_text("mine")
    write_package(models["tags"], tmp_path / "p")
    assert (tmp_path / "p" / "mine.txt").exists()
    assert (tmp_path / "p" / "model.bin").read_bytes() == as_table(models["tags"])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="with other files in it"):
        write_package(models["tags"], tmp_path / "other")
    with pytest.raises(InputError, match="is not a folder"):
        write_package(models["tags"], tmp_path / "other" / "notes.txt")


def test_the_page_holds_the_model_and_asks_for_nothing(models: dict[str, TextModel]) -> None:
    page = as_page(models["words"], "</title><script>alert(1)</script>")
    policy = " ".join(re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[0].split())
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    data, script = re.findall(r'<script type="([^"]*)"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert gzip.decompress(base64.b64decode(data[1])) == as_table(models["words"])
    for kind, content in (("script", script[1]), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert not re.search(r"https?://|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(", page)
    assert unescape(re.findall("<title>(.*?)</title>", page)[0]) == "</title><script>alert(1)</script>"
    assert "<script>alert" not in page


def test_the_command_writes_both(
    models: dict[str, TextModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models["tags"].save(tmp_path / "m")
    page, package = tmp_path / "page.html", tmp_path / "package"
    command = ["wgcn", "export", str(tmp_path / "m")]
    monkeypatch.setattr("sys.argv", [*command, "--html", str(page), "--js", str(package), "--title", "Mine"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert "<title>Mine</title>" in page.read_text()
    assert (package / "model.bin").read_bytes() == as_table(models["tags"])
    assert "Open it in a browser" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "Give --html FILE" in capsys.readouterr().err


def test_a_title_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no text"):
        list(export_model(tmp_path, tmp_path / "page.html", None, "half \udcff"))


def test_a_package_file_that_never_ends_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "package.json").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="a folder with other files in it"):
        check_package(tmp_path)
    (tmp_path / "package.json").unlink()
    os.mkfifo(tmp_path / "package.json")
    with pytest.raises(InputError, match="a folder with other files in it"):
        check_package(tmp_path)
