"""The original files of the citation sets: what they give, and that a hostile pickle gives nothing and does nothing."""

import os
import pickle
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgcn.base.errors import InputError
from wgcn_paper.datasets import DATASETS, load_dataset, planetoid
from wgcn_paper.datasets.layout import citation_digest


def same(a, b):
    return citation_digest(a) == citation_digest(b)


def test_small_set_is_converted(planetoid_files, citation_set):
    found = planetoid.convert("cora", planetoid_files, validation=1)
    assert found.features.toarray().tolist() == citation_set.features.toarray().tolist()
    assert found.document_graph.toarray().tolist() == citation_set.document_graph.toarray().tolist()
    assert found.labels.tolist() == [0, 1, 0, 1, 0, -1, 1]
    assert (found.train.tolist(), found.validation.tolist(), found.test.tolist()) == ([0], [1], [4, 6])
    assert found.features.dtype == found.document_graph.dtype == np.float32
    assert found.classes.tolist() == [0, 1]
    assert same(found, citation_set)


@pytest.mark.parametrize("name", ["citeseer", "pubmed", "cora"])
def test_real_files_give_the_arrays_that_are_published(data_folder: Path, monkeypatch, name):
    monkeypatch.setenv("WGCN_DATA", str(data_folder))
    folder = data_folder / "citation" / name / "planetoid"
    if not folder.is_dir():
        pytest.skip("needs the original planetoid files")
    files = {end: (folder / planetoid.file_name(name, end)).read_bytes() for end in planetoid.MEMBERS}
    found, stored = planetoid.convert(name, files), load_dataset(name)
    for matrix, expected in (
        (found.features, stored.features),
        (found.document_graph, stored.document_graph),
    ):
        assert matrix.shape == expected.shape
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(matrix, part), getattr(expected, part))
            assert getattr(matrix, part).dtype == getattr(expected, part).dtype
    for part in ("labels", "train", "validation", "test"):
        np.testing.assert_array_equal(getattr(found, part), getattr(stored, part))
    assert citation_digest(found) == DATASETS[name].digest


def test_citeseer_has_15_fillers_in_no_split(data_folder: Path, monkeypatch):
    monkeypatch.setenv("WGCN_DATA", str(data_folder))
    citeseer = load_dataset("citeseer")
    fillers = np.flatnonzero(citeseer.labels == -1)
    assert len(fillers) == 15
    assert citeseer.features[fillers].nnz == 0
    split = np.concatenate([citeseer.train, citeseer.validation, citeseer.test])
    assert not np.isin(fillers, split).any()


# Files that do not fit


ONE_HOT = np.eye(2, dtype=np.int32)


@pytest.mark.parametrize(
    ("member", "kind", "value"),
    [
        ("ally", "array", ONE_HOT),
        ("ty", "array", ONE_HOT[[0]]),
        ("ty", "array", np.ones((2, 2), np.int32)),
        ("ty", "array", np.ones(2, np.int32)),
        ("ty", "lists", {}),
        ("y", "array", ONE_HOT[[1]]),
        ("y", "array", ONE_HOT[[0, 1, 0, 1]]),
        ("x", "csr", [[9, 9, 9]]),
        ("tx", "csr", [[1, 2], [3, 4]]),
        ("tx", "csr", [[1, 2, 3]]),
        ("tx", "csr", [[np.nan, 2, 3], [0, 0, 1]]),
        ("tx", "array", ONE_HOT),
        ("graph", "lists", {0: [7]}),
        ("graph", "lists", {-1: [0]}),
        ("graph", "array", ONE_HOT),
    ],
)
def test_pickles_that_do_not_fit_are_one_error(planetoid_files, py2, member, kind, value):
    data = py2.whole(getattr(py2, kind)(value))
    with pytest.raises(InputError, match=r"ind\.cora\."):
        planetoid.convert("cora", planetoid_files | {member: data}, validation=1)


@pytest.mark.parametrize("places", ["", "four\nsix\n", "4\n4\n", "3\n4\n", "5\n6\n", "-1\n4\n", "4\n99999999999\n"])
def test_places_that_do_not_fit_are_one_error(planetoid_files, places):
    with pytest.raises(InputError, match=r"ind\.cora\.test\.index"):
        planetoid.convert("cora", planetoid_files | {"test.index": places.encode()}, validation=1)


def raw_array(py2, shape=(2,), code=b"i4", order=b"<", data=b"\0" * 8, version=1):
    """An array of the pickle, with any of its parts wrong."""
    dtype = py2.name("numpy", "dtype") + py2.tuple(py2.string(code), py2.integer(0), py2.integer(1)) + b"R"
    dtype += py2.tuple(py2.integer(3), py2.string(order)) + b"b"
    made = py2.name("numpy.core.multiarray", "_reconstruct") + py2.tuple() + b"R"
    sizes = py2.tuple(*map(py2.integer, shape))
    return py2.whole(made + py2.tuple(py2.integer(version), sizes, dtype, b"\x89", py2.string(data)) + b"b")


@pytest.mark.parametrize(
    "wrong",
    [
        {"code": b"O8"},
        {"code": b"S4"},
        {"order": b">"},
        {"shape": (2**31 - 1, 2**31 - 1)},
        {"shape": (-2, -1)},
        {"shape": ()},
        {"shape": (1, 1, 2)},
        {"data": b"\0" * 7},
        {"version": 2},
    ],
)
def test_array_is_made_only_of_what_fits(py2, wrong):
    assert planetoid._array("a", planetoid.unpickle("a", raw_array(py2))).tolist() == [0, 0]
    with pytest.raises(InputError, match="does not hold the array"):
        planetoid._array("a", planetoid.unpickle("a", raw_array(py2, **wrong)))


# Hostile pickles


class Call:
    """Pickles as the call of a function."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def attacks(marker):
    command = f"touch {marker}"
    code = f"open({str(marker)!r}, 'w').close()"
    return {
        "os.system": Call(os.system, command),
        "builtins.eval": Call(eval, code),
        "builtins.exec": Call(exec, code),
        "builtins.open": Call(open, str(marker), "w"),
        "a chain of getattr": Call(getattr, Call(getattr, Call(__import__, "os"), "path"), "join"),
        "an import": Call(__import__, "antigravity"),
        "inside a list": [1, {"key": Call(os.system, command)}],
        "numpy's own loader": Call(np.load, str(marker)),
        "an array of objects": np.array([Call(os.system, command)], dtype=object),
    }


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("attack", list(attacks("")))
def test_hostile_pickles_are_refused_and_do_nothing(tmp_path, attack, protocol):
    marker = tmp_path / "marker"
    data = pickle.dumps(attacks(marker)[attack], protocol=protocol)
    with pytest.raises(InputError, match=r"ind\.cora\.x is refused"):
        planetoid.unpickle("ind.cora.x", data)
    assert not marker.exists()


def hand_made(marker):
    command = b"touch " + str(marker).encode()
    return {
        "GLOBAL": b"cos\nsystem\n(U" + bytes([len(command)]) + command + b"tR.",
        "GLOBAL, Python 2": b"cposix\nsystem\n(U" + bytes([len(command)]) + command + b"tR.",
        "INST": b"(S'" + command + b"'\nios\nsystem\n.",
        "OBJ": b"(cos\nsystem\nS'" + command + b"'\no.",
        "a name with dots": b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
        "a name below an allowed one": b"\x80\x02cnumpy\ncore.multiarray\n.",
        "an attribute of an allowed one": b"\x80\x02cnumpy\nndarray.tofile\n.",
        "another name of numpy": b"\x80\x02cnumpy.core.multiarray\nscalar\n.",
        "a name with a space": b"\x80\x02cnumpy dtype\nx\n.",
        "a persistent id": b"Psomething\n.",
        "a binary persistent id": b"U\x01xQ.",
        "an extension": b"\x82\x01.",
        "a buffer": b"\x80\x05\x97.",
    }


@pytest.mark.parametrize("attack", list(hand_made("")))
def test_hand_made_pickles_are_refused_and_do_nothing(tmp_path, attack):
    marker = tmp_path / "marker"
    with pytest.raises(InputError, match=r"ind\.cora\.x is refused"):
        planetoid.unpickle("ind.cora.x", hand_made(marker)[attack])
    assert not marker.exists()


def test_the_unpickler_refuses_names_by_itself_too():
    loader = planetoid._Unpickler("ind.cora.x", b"")
    for module, name in (("os", "system"), ("builtins", "eval"), ("numpy", "load"), ("numpy.core", "multiarray")):
        with pytest.raises(InputError, match="is refused"):
            loader.find_class(module, name)
    with pytest.raises(InputError, match="persistent id"):
        loader.persistent_load("x")


def test_names_give_nothing_but_records():
    for record in planetoid._RECORDS.values():
        assert record.__module__ == planetoid.__name__


def test_a_huge_memo_index_is_refused():
    data = b"\x80\x02N" + b"r" + struct.pack("<I", 2**32 - 1) + b"."
    with pytest.raises(InputError, match="LONG_BINPUT"):
        planetoid.unpickle("ind.cora.x", data)


def test_state_cannot_change_a_record(py2):
    """BUILD on the class itself, rather than on an instance, must not set attributes of the class."""
    for name in (py2.name("numpy", "dtype"), py2.name("collections", "defaultdict")):
        before = dict(vars(planetoid._RECORDS["numpy", "dtype"]))
        with pytest.raises(InputError):
            planetoid.unpickle("x", py2.whole(name + b"N}(" + py2.string(b"state") + b"Nu\x86b"))
        assert dict(vars(planetoid._RECORDS["numpy", "dtype"])) == before


@pytest.mark.parametrize(
    "data", [b"", b".", b"\x80\x02", b"\x80\x02N", b"not a pickle", b"\x80\x02T\xff\xff\xff\x7fx."]
)
def test_damaged_pickles_are_one_error(data):
    with pytest.raises(InputError, match=r"ind\.cora\.x"):
        planetoid.unpickle("ind.cora.x", data)


def test_large_files_are_refused_unread(monkeypatch):
    monkeypatch.setattr(planetoid, "MAX_BYTES", 3)
    with pytest.raises(InputError, match="at most 3 are read"):
        planetoid.unpickle("ind.cora.x", b"\x80\x02N.")


@given(st.sampled_from(planetoid.MEMBERS), st.integers(0, 10**6), st.binary(min_size=1, max_size=4))
def test_any_damage_is_an_input_error_or_no_damage(planetoid_files, member, place, garbage):
    data = bytearray(planetoid_files[member])
    place %= len(data)
    data[place : place + len(garbage)] = garbage
    with suppress(InputError):
        planetoid.convert("cora", planetoid_files | {member: bytes(data)}, validation=1)
