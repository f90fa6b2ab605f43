"""The docs corpus: what is a document, what is taken out of it, and how it is cached."""

import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import wgcn.base.errors
from wgcn.base.errors import MissingDependencyError
from wgcn_paper.cache import cache_folder
from wgcn_paper.datasets import docstrings as docs_module
from wgcn_paper.datasets.docstrings import DocsCorpus, docs_corpus

SOURCE = str(Path(wgcn.base.errors.__file__).parents[1])


def same(a: DocsCorpus, b: DocsCorpus) -> bool:
    return (a.texts, a.names, a.labels.tolist()) == (b.texts, b.names, b.labels.tolist()) and (
        (a.train.tolist(), a.test.tolist()) == (b.train.tolist(), b.test.tolist())
    )


def run_python(code: str, *options: str, **environment: str) -> str:
    command = [sys.executable, *options, "-c", code]
    variables = {**os.environ, "PYTHONPATH": SOURCE, **environment}
    return subprocess.run(command, env=variables, check=True, capture_output=True, text=True).stdout.strip()


# The real corpus, collected once


@pytest.fixture(scope="session")
def corpus(docs):
    return docs


def test_there_are_at_least_twelve_classes_of_25_documents(corpus):
    sizes = Counter(corpus.labels.tolist())
    assert len(sizes) >= 12
    assert min(sizes.values()) >= 25
    assert {"numpy", "numpy.linalg", "scipy.stats", "sklearn.metrics"} <= set(sizes)
    assert corpus.classes.tolist() == sorted(sizes)


def test_documents_are_sorted_and_no_name_or_text_comes_twice(corpus):
    assert list(corpus.names) == sorted(set(corpus.names))
    assert len(set(corpus.texts)) == len(corpus.texts)


def test_every_name_lies_in_its_label(corpus):
    assert all(name.startswith(f"{label}.") for name, label in zip(corpus.names, corpus.labels, strict=True))


def test_every_text_has_at_least_twenty_words(corpus):
    assert min(len(re.findall(r"[^\W\d_]{2,}", text)) for text in corpus.texts) >= 20


def test_no_qualified_name_of_any_label_is_left_in_any_text(corpus):
    labels = [label for label in corpus.classes if "." in label]
    subpackages = "|".join(sorted({label.split(".")[1] for label in labels}))
    full = re.compile(r"(?<!\w)(?:numpy|np|scipy|sp|sklearn)\.\w", re.IGNORECASE)
    short = re.compile(rf"(?<![\w.])(?:{subpackages})\.\w")
    for name, text in zip(corpus.names, corpus.texts, strict=True):
        assert not [label for label in labels if label in text], name
        assert not full.search(text), name
        assert not short.search(text), name


def test_no_import_version_mark_or_see_also_section_is_left_in_any_text(corpus):
    leak = re.compile(r"^\s*>>> (?:import|from) |\.\. version(?:added|changed)::|^See Also\n---|sphx_glr", re.MULTILINE)
    assert [name for name, text in zip(corpus.names, corpus.texts, strict=True) if leak.search(text)] == []


def test_an_object_exported_twice_counts_once_at_its_home(corpus):
    by_name = set(corpus.names)
    assert "numpy.ma.average" in by_name
    assert "numpy.ma.extras.average" not in by_name  # defined here, exported by numpy.ma
    assert "numpy.absolute" in by_name
    assert "numpy.abs" not in by_name  # the same ufunc
    assert not any(name.startswith("numpy.matlib.") and "numpy." + name[13:] in by_name for name in by_name)


def test_private_and_test_modules_are_left_out(corpus):
    parts = {part for name in corpus.names for part in name.split(".")}
    assert not {part for part in parts if part.startswith("_")}
    assert not parts & {"tests", "conftest", "estimator_checks", "testutils"}


def test_about_70_percent_of_the_documents_are_for_training(corpus):
    assert len(corpus.train) + len(corpus.test) == len(corpus)
    assert 0.66 < len(corpus.train) / len(corpus) < 0.74


def test_split_is_the_hash_of_the_name(corpus):
    # sha256 begins 8cf4... and d061...; 70 % of the range of the hash ends at b333...
    assert docs_module.is_training("numpy.argmax")
    assert not docs_module.is_training("numpy.argmin")
    assert corpus.names.index("numpy.argmax") in corpus.train
    assert corpus.names.index("numpy.argmin") in corpus.test


def test_split_of_a_document_does_not_depend_on_the_others(corpus, monkeypatch):
    monkeypatch.setattr(docs_module, "_build", lambda: list(zip(corpus.names, corpus.texts, strict=True))[::7])
    few = docs_corpus(cache=False)
    all_training = {corpus.names[i] for i in corpus.train}
    assert {few.names[i] for i in few.train} == all_training & set(few.names)


def test_corpus_cached_by_another_process_equals_the_built_one(corpus, monkeypatch, tmp_path):
    # Experimental estimators are no documents, whether they are enabled or not.
    code = (
        "import sys, wgcn_paper.datasets.docstrings as docs\n"
        "from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer\n"
        "docs.docs_corpus(); print('torch' in sys.modules)"
    )
    assert run_python(code, "-Werror", WGCN_CACHE=str(tmp_path), PYTHONHASHSEED="7") == "False"
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path))
    monkeypatch.setattr(docs_module, "_build", lambda: pytest.fail("the cache was not used"))
    assert same(docs_corpus(), corpus)


# Collecting


def fabricated_module(name, **members):
    module = ModuleType(name)
    vars(module).update(members)
    return module


def defined_in(module, name="f", doc="A text."):
    def function():
        pass

    function.__module__, function.__name__, function.__doc__ = module, name, doc
    return function


def test_all_decides_what_is_public():
    shown, hidden, private = (defined_in("pack.mod", name) for name in ("shown", "hidden", "_private"))
    module = fabricated_module("pack.mod", shown=shown, hidden=hidden, _private=private, number=3)
    module.__all__ = ["shown", "_private", "number", "made_on_demand"]
    assert list(docs_module._public_objects(module)) == [("shown", shown)]


def test_without_all_only_what_the_module_defines_is_public():
    own, imported = defined_in("pack.mod"), defined_in("pack.other")
    module = fabricated_module("pack.mod", own=own, imported=imported, Alias=int, _private=defined_in("pack.mod"))
    assert list(docs_module._public_objects(module)) == [("own", own)]


def test_home_is_the_shortest_module_on_the_way_to_the_definition():
    exports = [("pack.a", "f"), ("pack.sub.deep", "f"), ("pack.sub", "g"), ("pack.sub", "f")]
    assert docs_module.public_name(defined_in("pack.sub._deep"), exports) == "pack.sub.f"
    assert docs_module.public_name(defined_in("pack._lib"), exports) == "pack.a.f"
    assert docs_module.public_name(SimpleNamespace(__module__=None), [("pack.b", "f"), ("pack.a", "f")]) == "pack.a.f"


def test_object_of_another_package_is_not_a_document():
    assert docs_module.public_name(defined_in("joblib.memory"), [("pack.sub", "f")]) is None


def test_module_that_fails_on_import_is_skipped(tmp_path, monkeypatch):
    package = tmp_path / "fabricated_pack"
    package.mkdir()
    (package / "__init__.py").write_text("import warnings\nwarnings.warn('old', DeprecationWarning)\n")
    (package / "broken.py").write_text("import a_module_that_nobody_has\n")
    (package / "tests.py").write_text("raise SystemExit\n")
    (package / "good.py").write_text("def f():\n    '''Good text.'''\ndef g():\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert docs_module.docstrings(["fabricated_pack"]) == {"fabricated_pack.good.f": "Good text."}


def test_label_is_the_subpackage():
    names = ["numpy.argmax", "numpy.linalg.norm", "scipy.sparse.linalg.svds"]
    assert [docs_module.label_of(name) for name in names] == ["numpy", "numpy.linalg", "scipy.sparse"]


def fabricated_docstrings(label, count):
    words = " ".join(["word"] * 20)
    return {f"{label}.f{i:02}": f"{words} {label.replace('.', ' ')} {chr(97 + i) * 2}" for i in range(count)}


def test_short_texts_duplicates_and_small_classes_are_left_out(monkeypatch):
    large = {name: text for root in docs_module.ROOTS for name, text in fabricated_docstrings(f"{root}.a", 25).items()}
    small = fabricated_docstrings("numpy.b", 24)
    extra = {"numpy.a.short": "Too short.", "numpy.a.z_copy": large["numpy.a.f03"]}
    monkeypatch.setattr(docs_module, "docstrings", lambda: {**extra, **small, **large})
    assert dict(docs_module._build()) == large


# Cleaning


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("See `scipy.stats.norm` or np.linalg.norm(x).", "See `` or (x)."),
        ("The ~numpy.random.Generator of NumPy.", "The  of NumPy."),
        ("A :func:`~sklearn.metrics.accuracy_score` here.", "A :func:`` here."),
        ("A :func:`score <sklearn.metrics.accuracy_score>` here.", "A :func:`score` here."),
        ("A :class:`Lasso` and :math:`a < b > c`.", "A :class:`Lasso` and :math:`a < b > c`."),
        ("Read the :ref:`User Guide <linear_model>`.", "Read the :ref:`User Guide`."),
        ("See :ref:`sphx_glr_auto_examples_svm_plot.py` for it.", "See  for it."),
        ("Use stats.norm(0) and signal.linalg.svd, not x.stats.y, e.g.", "Use norm(0) and svd, not x.stats.y, e.g."),
        ("The signal. The statistics of stats.", "The signal. The statistics of stats."),
        ("Text.\n.. versionadded:: 1.2.0\nMore.", "Text.\n\nMore."),
        ("x : int\n    .. deprecated:: 1.2\n        Use y.\n\n        Or z.\n    More.", "x : int\n\n    More."),
        (">>> draw()\n4.5  # may vary\n>>> x", ">>> draw()\n\n>>> x"),
        (">>> import numpy as np\n>>> from scipy import stats\n>>> x = 1", ">>> x = 1"),
        (">>> from scipy.stats import (norm,\n...     uniform)\n>>> x = 1", ">>> x = 1"),
        (">>> from scipy.stats import (norm\n\n>>> x = 1", ">>> x = 1"),
        (">>> import scipy.special as sc\n>>> sc.erf(1)", ">>> erf(1)"),
        (">>> import matplotlib.pyplot as plt\n>>> plt.show()", ">>> show()"),
        ("You may import times from here.", "You may import times from here."),
    ],
)
def test_cleaning_takes_out_what_gives_the_label_away(before, after):
    assert docs_module.clean(before) == after


def test_see_also_section_leaves_the_text_and_the_others_stay(docstring):
    text = docs_module.clean(docstring)
    assert text == ("Do it.\n\nParameters\nx : array_like\n    The input.\n\nNotes\nunseen : Not a citation.")


# The cache

DOCUMENTS = [("numpy.a", "text a"), ("numpy.b", "text b"), ("numpy.linalg.c", "text c")]


@pytest.fixture
def builds(monkeypatch, tmp_path):
    """Replace the slow builder by a small one, and count how often it is called."""
    calls = []
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(docs_module, "_build", lambda: calls.append(1) or DOCUMENTS)
    return calls


def cache_file():
    (path,) = cache_folder().iterdir()
    return path


def test_second_call_reads_the_cache(builds):
    first, second = docs_corpus(), docs_corpus()
    assert len(builds) == 1
    assert same(first, second)
    assert second.labels.tolist() == ["numpy", "numpy", "numpy.linalg"]


def test_without_cache_nothing_is_read_or_written(builds):
    assert len(docs_corpus(cache=False)) == len(docs_corpus(cache=False)) == 3
    assert len(builds) == 2
    assert not cache_folder().exists()


def test_cache_name_carries_every_version(builds, monkeypatch):
    docs_corpus()
    monkeypatch.setattr(docs_module, "FORMAT", docs_module.FORMAT + 1)
    docs_corpus()
    assert len(builds) == 2
    python = f"py{sys.version_info.major}.{sys.version_info.minor}"
    for path in cache_folder().iterdir():
        assert np.__version__ in path.name
        assert path.name.endswith(f"{python}.json.gz")


def test_cache_file_is_the_same_bytes_every_time(builds):
    docs_corpus()
    first = cache_file().read_bytes()
    cache_file().unlink()
    docs_corpus()
    assert cache_file().read_bytes() == first


def altered(data):
    stored = json.loads(gzip.decompress(data))
    stored["payload"][0][1] = "another text"
    return gzip.compress(json.dumps(stored).encode())


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:20] + bytes([data[20] ^ 255]) + data[21:],
        lambda data: b"not gzip",
        lambda data: gzip.compress(b"not json"),
        lambda data: gzip.compress(b"\xff\xfe"),
        lambda data: gzip.compress(b"[]"),
        lambda data: gzip.compress(b"[" * 100_000),
        altered,
    ],
)
def test_damaged_cache_is_built_again(builds, damage):
    good = docs_corpus()
    path = cache_file()
    data = path.read_bytes()
    path.write_bytes(damage(data))
    assert same(docs_corpus(), good)
    assert len(builds) == 2
    assert path.read_bytes() == data


def test_folder_that_cannot_be_written_means_no_cache(builds, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "file" / "cache"))
    assert same(docs_corpus(), docs_corpus())
    assert len(builds) == 2


def test_interrupted_write_leaves_no_file(builds, monkeypatch):
    def fail(self, target):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    assert len(docs_corpus()) == 3
    assert not cache_folder().exists()


def test_user_without_home_folder_means_no_cache(builds, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("WGCN_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert len(docs_corpus()) == 3


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("WGCN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "wgcn"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "wgcn"


# What can be missing


def test_import_loads_neither_scipy_nor_scikit_learn():
    code = (
        "import sys, wgcn; old = set(sys.modules); import wgcn_paper.datasets.docstrings\n"
        "print(sorted(set(sys.modules) - old))"
    )
    loaded = run_python(code)
    assert "wgcn_paper.datasets.docstrings" in loaded
    assert not re.search(r"'(?:scipy|sklearn|torch)\b", loaded)


def test_stripped_docstrings_are_one_clear_error():
    code = (
        "from wgcn_paper.datasets.docstrings import docs_corpus\nfrom wgcn.base.errors import InputError\n"
        "try:\n    docs_corpus(cache=False)\nexcept InputError as error:\n    print(error)"
    )
    assert "without -OO" in run_python(code, "-OO")


@pytest.mark.parametrize("package", ["scipy", "sklearn"])
def test_missing_package_is_named_with_its_remedy(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=r"docs corpus needs .*scikit-learn.*\.\[graph\]"):
        docs_corpus(cache=False)


def test_package_that_is_not_installed_is_named_with_its_remedy(monkeypatch):
    def not_found(package):
        if package == "scikit-learn":
            raise docs_module.importlib.metadata.PackageNotFoundError(package)
        return "1.0"

    monkeypatch.setattr(docs_module.importlib.metadata, "version", not_found)
    with pytest.raises(MissingDependencyError, match="scikit-learn"):
        docs_corpus()
