"""A model for the browser: one page that needs nothing else, or a package of JavaScript with a binary table.

`static/wgcn.js` does with typed arrays what `TextModel` does with numpy. The table is little-endian:

    bytes 0-7    "WGCN" and the version of the format, a 32-bit number
    bytes 8-11   the number of bytes of the header, padded so that it ends at a multiple of 8
    header       JSON: settings, classes, and for each array its type, its shape and where it begins after the header
    arrays       each at a multiple of 8
    last 8       the sum of all 32-bit words before, and the sum of the sums up to each word, both modulo 2**32

The vocabulary is the tree of `wgcn.text.ngrams.NgramTable`: words as text, and an n-gram as two numbers.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn import TextModel, __version__
from wgcn.base.errors import InputError
from wgcn.base.files import check_replaced, made_folder, open_whole, read_whole, writing
from wgcn.browser.characters import character_arrays
from wgcn.store.folder import check_target
from wgcn.text.ngrams import NgramTable
from wgcn.text.tokenize import TOKENIZERS, WordBytes

_MAGIC, _VERSION = b"WGCN", 2
_TABLE, _PACKAGE = "model.bin", "package.json"
_SCRIPTS = ("index.js", "index.d.ts", "wgcn.js", "wgcn.d.ts")
_LARGEST = 2**53 - 1  # integers up to here are numbers in JavaScript
_N_LOGS = 4096  # term frequencies whose logarithm is stored: numpy rounds some of them in its own way


def as_table(model: TextModel) -> bytes:
    """Return a model as the binary table that `wgcn.js` reads."""
    _check(model)
    arrays = {name: np.ascontiguousarray(array) for name, array in _arrays(model).items()}
    places, end = dict[str, list[Any]](), 0
    for name, array in arrays.items():
        places[name] = [f"{array.dtype.kind}{array.dtype.itemsize}", list(array.shape), end]
        end += -(-array.nbytes // 8) * 8
    header = json.dumps({**_settings(model), "arrays": places}, separators=(",", ":")).encode()
    header += b" " * (-(len(header) + 12) % 8)
    parts = [_MAGIC, np.array([_VERSION, len(header)], "<u4").tobytes(), header]
    for array in arrays.values():
        content = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        parts += [content, bytes(-len(content) % 8)]
    return b"".join([*parts, _sums(b"".join(parts))])


def _sums(content: bytes) -> bytes:
    """Return two sums that show damage: a word that changed, words that changed places, an end that is missing."""
    words = np.frombuffer(content, "<u4")
    times = np.arange(len(words), 0, -1, dtype=np.uint32)  # so often a word is in the sums up to it and to later ones
    return np.array([words.sum(dtype=np.uint32), (words * times).sum(dtype=np.uint32)], "<u4").tobytes()


def _check(model: TextModel) -> None:
    """Raise an InputError for what JavaScript could not do."""
    if not isinstance(model.tokenizer, str):
        own = [name for name, function in TOKENIZERS.items() if function is model.tokenizer]
        raise InputError(
            "A model with a tokenizer of your own cannot be exported: a Python function does not run in a browser. Fit "
            f"it with one of {', '.join(map(repr, own or TOKENIZERS))}, by name."
        )
    if model.scorer.word_embeddings.dtype != np.float32:
        raise InputError(
            f"The model has weights in {model.scorer.word_embeddings.dtype}; float32 can be exported. Save it first."
        )
    if not np.isfinite(model.scorer.word_embeddings).all():
        raise InputError("The model has weights that are no finite numbers, and cannot be exported. Fit it again.")


def _settings(model: TextModel) -> dict[str, Any]:
    """Return what the header says beside the arrays."""
    classes, vocabulary = model.classes.tolist(), model.vocabulary
    exact = all(isinstance(name, str) or abs(name) <= _LARGEST for name in classes)
    n_words = int(vocabulary.counts[~vocabulary.are_ngrams].sum())
    return {
        "tokenizer": model.tokenizer,
        "ngramRange": list(model.ngram_range),
        "sublinear": model.weighting.sublinear,
        "norm": model.weighting.norm,
        "lead": model.weighting.lead,
        "classes": classes if exact else list(map(str, classes)),
        "sharpness": model.scorer.sharpness,
        "multilabel": model.scorer.multilabel,
        "nTerms": len(vocabulary),
        "nLearnt": len(vocabulary) - sum(entry["words"] for entry in model.extensions),
        "newIdf": None if model.spelling is None else model.spelling.idf,
        "logTotal": float(np.log(max(n_words, 1))),
    }


def _arrays(model: TextModel) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of the table; what a model does not have is left out."""
    scorer, spelling, split, trust = model.scorer, model.spelling, model.split, model.trust
    stop_words = [word for word in model.stop_words if not re.search("[\ud800-\udfff]", word)]  # no token has these
    tree = NgramTable(model.vocabulary.words, model.ngram_range, stop_words)
    words = WordBytes.of(tree.index)
    n_words = len(tree.index)
    arrays: dict[str, npt.NDArray[Any]] = {
        **character_arrays(),
        "words.text": words.data,
        "words.lengths": np.fromiter((len(word.encode("utf-16-le")) // 2 for word in tree.index), np.uint32, n_words),
        "words.stopped": np.flatnonzero(~tree.is_kept).astype(np.uint32),
        "tree.parents": (tree.keys // max(n_words, 1)).astype(np.uint32),
        "tree.words": (tree.keys % max(n_words, 1)).astype(np.uint32),
        "tree.terms": tree.entry_of[:-1],
        "idf": model.weighting.idf,
        "logs": 1 + np.log(np.arange(1, _N_LOGS + 1, dtype=np.float32)),
        "table": scorer.word_embeddings,
        "bias": scorer.bias,
        "priorScores": model.scores([""])[0],  # those of a text without a word
    }
    if scorer.class_weights is not None:
        arrays["classWeights"] = scorer.class_weights
    if spelling is not None:
        arrays |= {"spelling.hashes": spelling.hashes, "spelling.rows": spelling.rows}
    if split is not None:
        arrays |= {f"split.{name}": part for name, part in vars(split).items()}
    if trust is not None:
        counts = model.vocabulary.counts
        arrays |= trust.tensors() | {"counts": counts.astype(np.uint32 if counts.max(initial=0) < 2**32 else float)}
    return arrays


def _static(name: str) -> str:
    return (files("wgcn.browser") / "static" / name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def as_page(model: TextModel, title: str = "Classify texts") -> str:
    """Return one HTML page with the model in it, which asks for nothing from elsewhere.

    Its content policy allows this one script and this one style sheet, by their digests, and no request. The table is
    compressed and written in base64.
    """
    table = gzip.compress(as_table(model), 6, mtime=0)
    script = f"\n{_static('wgcn.js')}\n{_static('page.js')}"
    style = f"\n{_static('page.css')}"
    parts = {
        "TITLE": escape(title),
        "SCRIPT_DIGEST": _digest(script),
        "STYLE_DIGEST": _digest(style),
        "SCRIPT": script,
        "STYLE": style,
        "MODEL": base64.b64encode(table).decode(),
    }
    return re.sub(r"\{\{([A-Z_]+)\}\}", lambda found: parts[found[1]], _static("page.html"))


def export_model(
    folder: Path, page: Path | None, package: Path | None, title: str, *, overwrite: bool = True
) -> Iterator[str]:
    """Write a saved model as a page, as a package, or both; yield what was written, for people to read."""
    if page is None and package is None:
        raise InputError("Nothing to write. Give --html FILE for a page, or --js DIR for a package of JavaScript.")
    if page is not None:
        check_target(page, overwrite=overwrite)
        if re.search("[\ud800-\udfff]", title):
            raise InputError(f"The title {title!r} has bytes that are no text. Write it in the terminal's encoding.")
    if package is not None:
        check_package(package, overwrite=overwrite)
    model = TextModel.load(folder)
    if page is not None:
        content = as_page(model, title).encode()
        with open_whole(page) as file:
            file.write(content)
        yield f"The page is in {page} ({len(content) / 1e6:.1f} MB). Open it in a browser."
    if package is not None:
        write_package(model, package)
        yield f"The package is in {package}. Use it: import {{ load }} from './{package.name}/index.js'"


def check_package(path: str | Path, *, overwrite: bool = True) -> None:
    """Raise an InputError if a package could not be written there: before long work. See `check_target`."""
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} exists and is not a folder. Choose another place.")
    if not path.is_dir() or not any(path.iterdir()):
        return
    try:
        ours = "wgcn" in json.loads(read_whole(path / _PACKAGE, 1 << 20))
    except (OSError, ValueError, TypeError, RecursionError):
        ours = False
    if not ours:
        raise InputError(f"{path} is a folder with other files in it, not an exported model. Choose another place.")
    check_replaced(path, "holds an exported model", overwrite=overwrite, inputs=())


def write_package(model: TextModel, path: str | Path) -> None:
    """Write a folder that npm can publish: the module, its types, the table and a README.

    An exported model that is there is replaced; other files stay.
    """
    path = Path(path)
    check_package(path)
    name = re.sub(r"[^a-z0-9-]+", "-", path.resolve().name.lower()).strip("-") or "model"
    classes = ", ".join(json.dumps(label, ensure_ascii=False) for label in model.classes.tolist())
    several = ", or a list of them" * model.scorer.multilabel
    contents = {
        _PACKAGE: (json.dumps(_package(name, model), indent=2) + "\n").encode(),
        _TABLE: as_table(model),
        **{script: _static(script).encode() for script in _SCRIPTS},
        "README.md": _README.format(name=name, classes=classes, several=several).encode(),
    }
    with writing(path), made_folder(path):
        for file_name, content in contents.items():
            with open_whole(path / file_name) as file:
                file.write(content)


def _package(name: str, model: TextModel) -> dict[str, Any]:
    return {
        "name": name,
        "version": "1.0.0",
        "description": f"A text classifier of {len(model.classes)} classes that runs in the browser and in Node.",
        "type": "module",
        "main": "./index.js",
        "types": "./index.d.ts",
        "exports": {
            ".": {"types": "./index.d.ts", "default": "./index.js"},
            "./wgcn.js": {"types": "./wgcn.d.ts", "default": "./wgcn.js"},
            f"./{_TABLE}": f"./{_TABLE}",
        },
        "files": [*_SCRIPTS, _TABLE],
        "sideEffects": False,
        "engines": {"node": ">=18"},
        "wgcn": __version__,
    }


_README = """\
# {name}

A text classifier, exported by the Python library wgcn. It has no dependencies and asks for nothing but
`model.bin`, so texts stay where they are.

```js
import {{ load }} from "{name}";

const model = await load();
model.predict("a text"); // one of the classes{several}
model.probabilities("a text"); // one number per class, in the order of model.classes
model.explain("a text").top(); // the words that speak for it: [term, part of the score]
```

In a page without a bundler: `import {{ load }} from "./{name}/index.js"`. `load` takes another URL of the table, and
`TextModel.fromBuffer` the table itself.

Classes: {classes}.

Labels are those of the Python library, and probabilities are within 1e-5.
"""
