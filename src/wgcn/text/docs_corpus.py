"""The docs corpus: the docstrings of the installed numpy, scipy and scikit-learn, labelled by sub-package.

Real text that needs no download, for both scenarios of the paper: independent documents (the texts) and linked
documents (A_dd, read from the "See Also" sections).
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import inspect
import pkgutil
import re
import sys
import textwrap
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wgcn.cache import read_cached, write_cached
from wgcn.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["DocsCorpus", "docs_corpus"]

FORMAT = 2  # Part of the cache key: raise it whenever the same docstrings would give another corpus.
ROOTS = ("numpy", "scipy", "sklearn")
# They are there only in a process that has asked scikit-learn for what is experimental.
EXPERIMENTAL = {"HalvingGridSearchCV", "HalvingRandomSearchCV", "IterativeImputer"}
MIN_WORDS = 20
MIN_DOCUMENTS = 25
TRAIN_SHARE = 0.7

# Private modules, tests, build tools, vendored code, and modules whose import changes how the package behaves.
SKIPPED = re.compile(
    "_.*|test_.*|tests|testutils|conftest|estimator_checks|core|distutils|f2py|cython_.*|mypy_plugin|externals|experimental"
)
IMPORT = re.compile(
    r"\s*(?:>>>|\.\.\.)?\s*(?:from\s+[\w.]+\s+import\b|import\s+[\w.]+(?:\s+as\s+\w+)?\s*(?:[,;#].*)?$)"
)
MODULE_ALIAS = re.compile(r"(?:numpy|scipy|sklearn).*\bas\s+(\w+)")
UNDERLINE = re.compile(r"\s*(?:-{3,}|={3,})\s*")
# With its indented body: scipy writes sets into some, in an order that differs from run to run.
VERSION_MARK = re.compile(
    r"^([ \t]*)\.\. (?:versionadded|versionchanged|deprecated)::.*(?:\n(?:\1[ \t]+.*|[ \t]*(?=\n)))*", re.MULTILINE
)
# scipy draws the examples of some distributions anew whenever it is imported.
VARYING = re.compile(r"^.*# may vary$", re.MULTILINE)
ROLE = re.compile(r":(?:py:)?(ref|doc|func|class|meth|mod|obj|attr|data|exc):`([^`<]*)(<[^`>]*>)?`")
QUALIFIED = re.compile(r"~?(?<!\w)(?:numpy|np|scipy|sp|sklearn|skl)(?:\.\w+)+", re.IGNORECASE)
DOTTED = re.compile(r"(?<![\w.])(?:[A-Za-z_]\w*\.)+(?=\w)")
WORD = re.compile(r"[^\W\d_]{2,}")
CITED = r"(?::[\w:]+:)?`?~?[A-Za-z_][\w.]*`?"
CITATION_LINE = re.compile(rf"({CITED}(?:\s*,\s*{CITED})*)\s*,?\s*(?::|$)")


@dataclass(frozen=True, eq=False)
class DocsCorpus:
    """Docstrings with their labels, a fixed split, and the links between them."""

    texts: tuple[str, ...]
    labels: npt.NDArray[Any]  # (documents,)
    train: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]
    document_graph: csr_array  # (documents, documents), entry [i, j] is 1 if document i cites document j
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
    and imports, which would give the label away, are taken out of the text. What a "See Also" section lists is cited.
    The documents depend on the installed versions; whether one is for training depends on its name alone.

    Parameters
    ----------
    cache : bool, default True
        Keep the corpus in :func:`wgcn.cache.cache_folder`, because importing every module takes seconds.

    Returns
    -------
    DocsCorpus
        In the order of the names.

    Raises
    ------
    MissingDependencyError
        If scipy or scikit-learn is not installed.
    InputError
        If the installed packages have no docstrings.
    """
    file_name = _cache_name()
    dataset = _from_payload(read_cached(file_name)) if cache else None
    if dataset is None:
        payload = _build()
        if cache:
            write_cached(file_name, payload)
        dataset = _assemble(**payload)
    return dataset


def _build() -> dict[str, Any]:
    """Return the [name, text] pairs sorted by name, and the links as sorted pairs of document indices."""
    docstrings, aliases = _collect(ROOTS) if sys.flags.optimize < 2 else ({}, {})
    texts = _select_documents(docstrings)
    without = [root for root in ROOTS if not any(name.startswith(f"{root}.") for name in texts)]
    if without:
        raise InputError(
            f"The docs corpus is made of docstrings, and too few are found in {', '.join(without)}. "
            "Run Python without -OO (PYTHONOPTIMIZE=2), with packages that keep their docstrings."
        )
    index = {name: i for i, name in enumerate(texts)}
    links = {
        (index[name], index[cited])
        for name in texts
        for entry in see_also(docstrings[name])
        if (cited := resolve(entry, name, aliases)) in index and cited != name
    }
    return {"documents": list(texts.items()), "links": sorted(links)}


def _select_documents(docstrings: Mapping[str, str]) -> dict[str, str]:
    """Return the cleaned text by name, in the order of names, without short texts, duplicates and small classes."""
    modules = {part for name in docstrings for part in name.split(".")[1:-1]}
    texts: dict[str, str] = {}
    seen: set[str] = set()
    for name in sorted(docstrings):
        text = clean(docstrings[name], modules)
        if len(WORD.findall(text)) >= MIN_WORDS and text not in seen:
            texts[name] = text
            seen.add(text)
    sizes = Counter(map(label_of, texts))
    return {name: text for name, text in texts.items() if sizes[label_of(name)] >= MIN_DOCUMENTS}


# Collecting


def _collect(roots: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the docstring of every public object by name, and that name by every name the object is exported as."""
    objects: dict[int, Any] = {}
    exports: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for root in roots:
            for module in _public_modules(root):
                for attribute, item in _public_objects(module):
                    objects[id(item)] = item
                    exports[id(item)].append((module.__name__, attribute))
    docstrings: dict[str, str] = {}
    aliases: dict[str, str] = {}
    for key, item in objects.items():
        name = public_name(item, exports[key])
        # Read from the object itself: inspect.getdoc would give a subclass the text of its parent.
        if name and isinstance(item.__doc__, str):
            docstrings[name] = inspect.cleandoc(item.__doc__)
            aliases.update({f"{module}.{attribute}": name for module, attribute in exports[key]})
    # Within a sub-package the short name is enough, even for what only one of its inner modules exports.
    for name in sorted(docstrings):
        aliases.setdefault(f"{label_of(name)}.{name.rpartition('.')[2]}", name)
    return docstrings, aliases


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
        # Not getattr: deprecated shims make their members on demand, with a warning, and hold none.
        item = members.get(name)
        documented = inspect.isclass(item) or inspect.isroutine(item) or isinstance(item, np.ufunc)
        # A module that declares nothing also holds what it imports for its own use.
        own = declared or getattr(item, "__module__", None) == module.__name__
        if documented and own and not name.startswith("_") and name not in EXPERIMENTAL:
            yield name, item


def public_name(item: object, exports: Sequence[tuple[str, str]]) -> str | None:
    """Return the one name under which an object counts, or None if it comes from another package.

    Of the (module, attribute) pairs that export it, those on the way to the module that defines it come first, then
    the shortest module, then the attribute that is the object's own name.
    """
    defined_in = getattr(item, "__module__", None)
    if not isinstance(defined_in, str):
        defined_in = ""  # Most ufuncs do not know their module.
    elif defined_in.split(".")[0] not in {module.split(".")[0] for module, _ in exports}:
        return None
    own = getattr(item, "__name__", "")

    def rank(export: tuple[str, str]) -> tuple[bool, int, str, bool, str]:
        module, attribute = export
        return not f"{defined_in}.".startswith(f"{module}."), module.count("."), module, attribute != own, attribute

    module, attribute = min(exports, key=rank)
    return f"{module}.{attribute}"


def label_of(name: str) -> str:
    """Return the sub-package of a qualified name: ``scipy.sparse`` for ``scipy.sparse.linalg.svds``."""
    return ".".join(name.split(".")[:-1][:2])


# Cleaning


def clean(docstring: str, modules: Iterable[str]) -> str:
    """Return the text of a docstring without what gives its sub-package away.

    Parameters
    ----------
    docstring : str
        With its indentation removed.
    modules : iterable of str
        Names that are taken away where they qualify another: with ``stats``, ``stats.norm`` becomes ``norm``.
    """
    lines, imports = _split_imports(_split_see_also(docstring)[0])
    qualifiers = {*modules, *MODULE_ALIAS.findall(imports)}
    text = VARYING.sub("", VERSION_MARK.sub("", "\n".join(lines)))
    text = ROLE.sub(_role_text, text)
    text = QUALIFIED.sub("", text)
    text = DOTTED.sub(lambda match: ".".join(dropwhile(qualifiers.__contains__, match[0].split("."))), text)
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _role_text(match: re.Match[str]) -> str:
    role, shown, target = match.groups()
    # A bare reference shows the title of a page that is not here, and its target is often named after the sub-package.
    return "" if role in ("ref", "doc") and target is None else str(shown).strip()


def _split_imports(lines: Iterable[str]) -> tuple[list[str], str]:
    """Return the other lines, and the import statements as one text."""
    others: list[str] = []
    imports: list[str] = []
    open_brackets = 0
    for line in lines:
        if open_brackets <= 0 and not IMPORT.match(line):
            others.append(line)
            continue
        imports.append(line)
        # "from a import (b," goes on to the closing bracket; a blank line ends even one that never closes.
        open_brackets = open_brackets + line.count("(") - line.count(")") if line.strip() else 0
    return others, "\n".join(imports)


def _split_see_also(docstring: str) -> tuple[list[str], list[str]]:
    """Return the lines outside and those inside the "See Also" section, without its header."""
    outside: list[str] = []
    inside: list[str] = []
    current = outside
    lines = docstring.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.strip() and UNDERLINE.fullmatch(following):
            current = inside if line.strip().lower() == "see also" else outside
            if current is inside:
                continue
        if current is outside or not UNDERLINE.fullmatch(line):
            current.append(line)
    return outside, inside


# Citations


def see_also(docstring: str) -> list[str]:
    """Return the names that the "See Also" section lists, as they are written there."""
    entries: list[str] = []
    for line in textwrap.dedent("\n".join(_split_see_also(docstring)[1])).splitlines():
        match = CITATION_LINE.match(line)  # Descriptions are indented and so do not match.
        if match:
            entries.extend(re.sub(r":[\w:]+:|[`~]", "", part).strip(" .") for part in match[1].split(","))
    return entries


def resolve(entry: str, citing: str, aliases: Mapping[str, str]) -> str | None:
    """Return the document that an entry of a "See Also" section names, or None.

    It is looked for in the module of the citing document, in the packages round it, as a qualified name and in numpy.
    """
    scopes = citing.split(".")[:-1]
    candidates = [".".join([*scopes[:depth], entry]) for depth in range(len(scopes), 0, -1)]
    candidates += [entry, re.sub(r"^np\.", "numpy.", entry), f"numpy.{entry}"]
    return next((aliases[name] for name in candidates if name in aliases), None)


# The data set


def is_training(name: str) -> bool:
    """Tell whether a document is for training, by a hash of its name alone."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) < TRAIN_SHARE * 2**64


def _assemble(documents: Sequence[tuple[str, str]], links: Sequence[tuple[int, int]]) -> DocsCorpus:
    from scipy.sparse import csr_array

    names, texts = zip(*documents, strict=True)
    cells = np.array(links, dtype=np.int64).reshape(len(links), 2)
    graph = csr_array((np.ones(len(cells), np.float32), (cells[:, 0], cells[:, 1])), shape=(len(names), len(names)))
    graph.sum_duplicates()
    train = np.array([is_training(name) for name in names])
    return DocsCorpus(
        texts=texts,
        labels=np.array([label_of(name) for name in names]),
        train=np.flatnonzero(train).astype(np.int64),
        test=np.flatnonzero(~train).astype(np.int64),
        document_graph=graph,
        names=names,
    )


def _from_payload(payload: Any) -> DocsCorpus | None:
    try:
        dataset = _assemble(**payload)
    except Exception:  # Whatever is wrong with what was cached, the answer is to build it again.
        return None
    return dataset if all(isinstance(text, str) for text in dataset.texts) else None


def _cache_name() -> str:
    try:
        versions = "-".join(importlib.metadata.version(package) for package in ("numpy", "scipy", "scikit-learn"))
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingDependencyError("sklearn", "The docs corpus") from error
    return f"docs-{FORMAT}-{versions}-py{sys.version_info.major}.{sys.version_info.minor}.json.gz"
