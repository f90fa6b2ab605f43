"""The docs corpus: the docstrings of the installed numpy, scipy and scikit-learn: real text that needs no download."""

import hashlib
import importlib.metadata
import inspect
import pkgutil
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError, MissingDependencyError, needs
from wgcn_paper.cache import read_cached, write_cached

FORMAT = 4  # Part of the cache key: raise it whenever the same docstrings would give another corpus.
ROOTS = ("numpy", "scipy", "sklearn")
# Present only in a process that has enabled scikit-learn's experimental estimators.
EXPERIMENTAL = {"HalvingGridSearchCV", "HalvingRandomSearchCV", "IterativeImputer"}
MIN_WORDS = 20
MIN_DOCUMENTS = 25
TRAIN_SHARE = 0.7

# Private modules, tests, build tools, vendored code, and modules whose import changes how the package behaves.
SKIPPED = re.compile(
    "_.*|test_.*|tests|testutils|conftest|estimator_checks|core|distutils|f2py|cython_.*|mypy_plugin|externals|experimental"
)
WORD = re.compile(r"[^\W\d_]{2,}")
SECTION = re.compile(r"^(.+)\n[ \t]*(?:-{3,}|={3,})[ \t]*$", re.MULTILINE)
# What is taken out of a text, in this order, because it gives the sub-package away or differs from run to run.
REMOVED = [
    # Version notes with their indented body: scipy writes sets into some, in any order.
    r"^([ \t]*)\.\. (?:versionadded|versionchanged|deprecated)::.*(?:\n(?:\1[ \t]+.*|[ \t]*(?=\n)))*",
    # Examples of some distributions in scipy, which are drawn anew at each import.
    r"^.*# may vary$",
    # Imports, up to the closing bracket or a blank line.
    r"^[ \t]*(?:>>>|\.\.\.)?[ \t]*from[ ]+[\w.]+[ ]+import\b(?:[ ]*\((?:[^)\n]|\n(?![ \t]*\n))*)?.*$",
    r"^[ \t]*(?:>>>|\.\.\.)?[ \t]*import[ ]+[\w.]+(?:[ ]+as[ ]+\w+)?[ ]*(?:[,;#].*)?$",
    # References without a title of their own, and the targets of the others.
    r":(?:ref|doc):`[^`<]*`",
    r"\s*<[^`<>]*>(?=`)",
    # Qualified names, and then what qualifies the others: stats.norm becomes norm.
    r"(?i:~?(?<!\w)(?:numpy|np|scipy|sp|sklearn|skl)(?:\.\w+)+)",
    r"(?<![\w.])(?:[A-Za-z_]\w+\.)+(?=\w)",
    r"[ \t]+$",
]


@dataclass(frozen=True, eq=False)
class DocsCorpus:
    """Docstrings with their labels and a fixed split."""

    texts: tuple[str, ...]
    labels: npt.NDArray[Any]  # (documents,)
    train: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]
    names: tuple[str, ...]

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The different labels, sorted."""
        return np.unique(self.labels)

    def __len__(self) -> int:
        return len(self.texts)


def docs_corpus(*, cache: bool = True) -> DocsCorpus:
    """Return the docstrings of the installed numpy, scipy and scikit-learn, labelled by sub-package.

    A document is a public function or class; its label is its sub-package, such as ``scipy.stats``. Qualified names
    and imports, which would give the label away, are taken out of the text. The documents, in the order of their names,
    depend on the installed versions; whether one is for training depends on its name alone. With `cache`, the corpus is
    kept in :func:`wgcn_paper.cache.cache_folder`, because importing every module takes seconds.
    """
    file_name = cache_name("docs")
    documents = read_cached(file_name) if cache else None
    if documents is None:
        documents = _build()
        if cache:
            write_cached(file_name, documents)
    names, texts = zip(*documents, strict=True)
    train = np.array([is_training(name) for name in names])
    labels = np.array([label_of(name) for name in names])
    return DocsCorpus(texts, labels, np.flatnonzero(train), np.flatnonzero(~train), names)


def cache_name(what: str) -> str:
    """Return the name of a cache file for something that depends on the installed versions."""
    with needs("The docs corpus", "graph"):
        versions = "-".join(importlib.metadata.version(package) for package in ("numpy", "scipy", "scikit-learn"))
    return f"{what}-{FORMAT}-{versions}-py{sys.version_info.major}.{sys.version_info.minor}.json.gz"


def is_training(name: str) -> bool:
    """Whether a document is for training, by a hash of its name alone."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) < TRAIN_SHARE * 2**64


def label_of(name: str) -> str:
    """Return the sub-package of a qualified name: ``scipy.sparse`` for ``scipy.sparse.linalg.svds``."""
    return ".".join(name.split(".")[:-1][:2])


def _build() -> list[tuple[str, str]]:
    """Return the name and the text of each document, sorted by name, without short texts, duplicates, small classes."""
    by_name = docstrings() if sys.flags.optimize < 2 else {}
    names: dict[str, str] = {}  # by text
    for name in sorted(by_name):
        text = clean(by_name[name])
        if len(WORD.findall(text)) >= MIN_WORDS:
            names.setdefault(text, name)
    sizes = Counter(map(label_of, names.values()))
    documents = [(name, text) for text, name in names.items() if sizes[label_of(name)] >= MIN_DOCUMENTS]
    without = [root for root in ROOTS if not any(name.startswith(f"{root}.") for name, _ in documents)]
    if without:
        raise InputError(
            f"The docs corpus is made of docstrings, and too few are found in {', '.join(without)}. "
            "Run Python without -OO (PYTHONOPTIMIZE=2), with packages that keep their docstrings."
        )
    return documents


def docstrings(roots: Iterable[str] = ROOTS) -> dict[str, str]:
    """Return the docstring of every public object of some packages by its name."""
    objects: dict[int, tuple[Any, list[tuple[str, str]]]] = {}  # with those that export them
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in (module for root in roots for module in _public_modules(root)):
            for attribute, item in _public_objects(module):
                objects.setdefault(id(item), (item, []))[1].append((module.__name__, attribute))
    # Read from the object itself: inspect.getdoc would give a subclass the text of its parent.
    documented = {public_name(item, exports): item.__doc__ for item, exports in objects.values()}
    return {name: inspect.cleandoc(text) for name, text in documented.items() if name and isinstance(text, str)}


def _public_modules(name: str) -> Iterator[ModuleType]:
    try:
        module = importlib.import_module(name)
    except Exception as error:
        if name in ROOTS:
            raise MissingDependencyError("sklearn", "The docs corpus") from error
        return  # An optional dependency is missing or the module refuses to be imported.
    yield module
    for child in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if not SKIPPED.fullmatch(child.name):
            yield from _public_modules(f"{name}.{child.name}")


def _public_objects(module: ModuleType) -> Iterator[tuple[str, Any]]:
    members = vars(module)
    declared = "__all__" in members
    for name in members["__all__"] if declared else list(members):
        # Not getattr: deprecated modules make their members on demand, with a warning.
        item = members.get(name)
        documented = inspect.isclass(item) or inspect.isroutine(item) or isinstance(item, np.ufunc)
        # A module without __all__ also holds what it imports for its own use.
        own = declared or getattr(item, "__module__", None) == module.__name__
        if documented and own and not name.startswith("_") and name not in EXPERIMENTAL:
            yield name, item


def public_name(item: object, exports: Sequence[tuple[str, str]]) -> str | None:
    """Return the one name of an object, which (module, attribute) pairs export; None if it is of another package."""
    defined_in = getattr(item, "__module__", None) or ""  # Most ufuncs do not know their module.
    if defined_in and defined_in.split(".")[0] not in {module.split(".")[0] for module, _ in exports}:
        return None
    own = getattr(item, "__name__", "")
    # On the way to the module that defines it, then the shortest module, then the object's own name.
    ranked = [
        (not f"{defined_in}.".startswith(f"{module}."), module.count("."), module, name != own, name)
        for module, name in exports
    ]
    _, _, module, _, name = min(ranked)
    return f"{module}.{name}"


def clean(docstring: str) -> str:
    """Return the text of a docstring, its indentation removed, without what gives its sub-package away."""
    text = "\n".join(f"{title}{body}" for title, body in sections(docstring) if title.lower() != "see also")
    for pattern in REMOVED:
        text = re.sub(pattern, "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def sections(docstring: str) -> Iterator[tuple[str, str]]:
    """Yield titles and bodies; what is before the first title has an empty one."""
    parts = ["", *SECTION.split(docstring)]
    yield from zip(map(str.strip, parts[::2]), parts[1::2], strict=True)
