"""The original files of the citation sets, ``ind.NAME.x`` and others, of the repository kimiyoung/planetoid.

They are pickles of Python 2, which could run any code when they are loaded. Here they cannot: a pickle is refused
before loading if it has an instruction that these files do not need; every class that it names must be on a list of
six; and each of these is replaced by a record that only stores its arguments. The arrays are made from the records
afterwards, with every size and type checked.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError
from wgcn.store.folder import check_csr
from wgcn_paper.datasets.dataset import Dataset

if TYPE_CHECKING:
    from scipy.sparse import csr_array


MEMBERS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
MAX_BYTES = 64 * 2**20  # of one file; the largest has 7.6 million
MAX_DOCUMENTS = 10**6
_DTYPES = {(b"f4", b"<"): "<f4", (b"f8", b"<"): "<f8", (b"i4", b"<"): "<i4", (b"i8", b"<"): "<i8"}
# fmt: off
_OPCODES = {
    "APPEND", "APPENDS", "BINGET", "BININT", "BININT1", "BININT2", "BINPUT", "BINSTRING", "BUILD", "EMPTY_DICT",
    "EMPTY_LIST", "EMPTY_TUPLE", "GLOBAL", "LONG_BINGET", "LONG_BINPUT", "MARK", "NEWFALSE", "NEWOBJ", "NEWTRUE",
    "NONE", "PROTO", "REDUCE", "SETITEM", "SETITEMS", "SHORT_BINSTRING", "STOP", "TUPLE", "TUPLE1", "TUPLE2",
    "TUPLE3",
}
# fmt: on


def file_name(name: str, member: str) -> str:
    """Return the name of an original file."""
    return f"ind.{name}.{member}"


def convert(name: str, files: Mapping[str, bytes], *, validation: int = 500) -> Dataset:
    """Return a citation set from the content of its original files, the :data:`MEMBERS`.

    The documents are those of ``allx``, then those of ``tx`` at the places that ``test.index`` gives. A place between
    them that it leaves out (citeseer has 15) is a document without words and with the label -1, in no part of the
    split. The training documents are the first, as many as ``y`` has; the documents after them are for validation.
    """
    from scipy.sparse import coo_array, csr_array

    names = {member: file_name(name, member) for member in MEMBERS}
    known, beginning, test_words = (_matrix(names[member], files[member]) for member in ("allx", "x", "tx"))
    first, known_labels, test_labels = (_one_hot(names[member], files[member]) for member in ("y", "ally", "ty"))
    places = _places(names["test.index"], files["test.index"])
    n_known, n_documents = known.shape[0], int(places.max()) + 1
    if int(places.min()) != n_known or known.shape[1] != test_words.shape[1]:
        raise InputError(f"The files {names['allx']}, {names['tx']} and {names['test.index']} do not fit together.")
    for member, labels, rows in (("ally", known_labels, n_known), ("ty", test_labels, len(places))):
        if len(labels) != rows:
            raise InputError(f"{names[member]} has {len(labels)} rows; expected {rows}.")
    if len(places) != test_words.shape[0]:
        raise InputError(
            f"{names['test.index']} has {len(places)} lines; {names['tx']} has {test_words.shape[0]} rows."
        )
    if len(first) + validation > n_known or not np.array_equal(first, known_labels[: len(first)]):
        raise InputError(f"{names['y']} is not the beginning of {names['ally']}.")
    if beginning.shape != (len(first), known.shape[1]) or (known[: len(first)] != beginning).nnz:
        raise InputError(f"{names['x']} is not the beginning of {names['allx']}.")

    labels = np.full(n_documents, -1, dtype=np.int64)
    labels[:n_known] = known_labels
    labels[places] = test_labels
    known, test_words = coo_array(known), coo_array(test_words)
    features = csr_array(
        (
            np.concatenate([known.data, test_words.data]),
            (
                np.concatenate([known.row, places.astype(np.int32)[test_words.row]]),
                np.concatenate([known.col, test_words.col]),
            ),
        ),
        shape=(n_documents, known.shape[1]),
        dtype=np.float32,
    )
    features.sum_duplicates()
    train = np.arange(len(first), dtype=np.int64)
    return Dataset(
        name,
        None,
        features,
        labels,
        train,
        np.sort(places),
        _graph(names["graph"], files["graph"], n_documents),
        None,
        np.arange(len(first), len(first) + validation, dtype=np.int64),
    )


def unpickle(name: str, data: bytes) -> Any:
    """Return the content of a pickle of the original files: numbers, bytes, lists, dicts and records.

    Anything that the original files do not need raises an :class:`~wgcn.base.errors.InputError`, and nothing is called.
    """
    if len(data) > MAX_BYTES:
        raise InputError(f"{name} has {len(data):,} bytes; at most {MAX_BYTES:,} are read.")
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "GLOBAL" and (pair := tuple(str(argument).split(" ", 1))) not in _RECORDS:
                _refuse(name, ".".join(pair))
            # A memo index is a size to allocate, so it must not exceed what the file could have stored.
            if opcode.name not in _OPCODES or (opcode.name == "LONG_BINPUT" and int(argument or 0) > len(data)):
                raise InputError(f"{name} is refused: the instruction {opcode.name} is not allowed in its pickle.")
        return _Unpickler(name, data).load()
    except InputError:
        raise
    except Exception as error:  # whatever the damage, the message is the same
        raise InputError(f"{name} is not a whole pickle of the original files ({error!s:.200}).") from error


class _Record:
    """Stores what a pickle passes to a class."""

    __slots__ = ("arguments", "state")

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Array(_Record):
    __slots__ = ()


class _DType(_Record):
    __slots__ = ()


class _Csr(_Record):
    __slots__ = ()


class _Type(_Record):
    """Stands for a class that is only named, never made."""

    __slots__ = ()


class _Lists(dict[Any, Any]):
    """A defaultdict without a default."""

    __slots__ = ()

    def __init__(self, factory: Any = None) -> None:
        super().__init__()

    def __setstate__(self, state: Any) -> None:
        raise TypeError("a dict has no state")


_RECORDS: Mapping[tuple[str, ...], type] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Type,
    ("numpy", "dtype"): _DType,
    ("scipy.sparse.csr", "csr_matrix"): _Csr,
    ("collections", "defaultdict"): _Lists,
    ("__builtin__", "list"): _Type,
}


class _Unpickler(pickle.Unpickler):
    def __init__(self, name: str, data: bytes) -> None:
        super().__init__(io.BytesIO(data), fix_imports=False, encoding="bytes")
        self._name = name

    def find_class(self, module: str, name: str) -> Any:
        return _RECORDS[module, name] if (module, name) in _RECORDS else _refuse(self._name, f"{module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        _refuse(self._name, "a persistent id")


def _refuse(name: str, what: str) -> NoReturn:
    raise InputError(
        f"{name} is refused: the pickle asks for {what!r:.100}, which the original files do not need. "
        "Loading it the usual way could run any program."
    )


def _array(name: str, record: Any) -> npt.NDArray[Any]:
    """Make an array from the record of one."""
    try:
        version, shape, dtype, fortran, data = record.state
        (code, *_), order = dtype.arguments, dtype.state[1]
        flat = np.frombuffer(data, dtype=_DTYPES[code, order])
        fits = type(record) is _Array and type(dtype) is _DType and version == 1 and 1 <= len(shape) <= 2
        if not fits or min(shape) < 0 or math.prod(shape) != flat.size:
            raise ValueError("its size is wrong")
        return flat.reshape(shape, order="F" if fortran else "C")
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{name} does not hold the array that it should ({error!s:.100}).") from error


def _matrix(name: str, data: bytes) -> csr_array:
    from scipy.sparse import csr_array

    record = unpickle(name, data)
    try:
        state = record.state
        if type(record) is not _Csr or state[b"format"] != b"csr":
            raise TypeError("it is something else")
        rows, columns = state[b"_shape"]
        if not 0 < rows <= MAX_DOCUMENTS or not 0 < columns <= MAX_DOCUMENTS:
            raise ValueError(f"its shape is {rows} by {columns}")
        parts = tuple(_array(name, state[part]) for part in (b"data", b"indices", b"indptr"))
        matrix = csr_array(parts, shape=(rows, columns))
        check_csr(matrix)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name} does not hold a sparse matrix ({error!s:.100}).") from error
    return matrix


def _one_hot(name: str, data: bytes) -> npt.NDArray[np.int64]:
    """Return the class of each row of a pickled array that has a one at the class."""
    array = _array(name, unpickle(name, data))
    if array.ndim != 2 or not ((array == 0) | (array == 1)).all() or not (array.sum(axis=1) == 1).all():
        raise InputError(f"{name} does not have one label per row.")
    classes: npt.NDArray[np.int64] = array.argmax(axis=1).astype(np.int64)
    return classes


def _places(name: str, data: bytes) -> npt.NDArray[np.int64]:
    try:
        if len(data) > MAX_BYTES:
            raise ValueError("it is too large")
        places = [int(line) for line in data.decode("ascii").split()]
        if not places or min(places) < 0 or max(places) >= MAX_DOCUMENTS or len(set(places)) != len(places):
            raise ValueError("they are too large, negative, repeated or none")
    except ValueError as error:
        raise InputError(f"{name} does not hold the numbers of the test documents ({error!s:.100}).") from error
    return np.array(places, dtype=np.int64)


def _graph(name: str, data: bytes, n_documents: int) -> csr_array:
    """Return the symmetric matrix of a pickled dict from a document to the documents that it is linked with."""
    from scipy.sparse import csr_array

    links = unpickle(name, data)
    if type(links) is not _Lists or not all(type(near) is list for near in links.values()):
        raise InputError(f"{name} does not hold lists of links.")
    try:
        pairs = np.array([(i, j) for i, near in links.items() for j in near], dtype=np.int64).reshape(-1, 2)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} holds links that are not numbers.") from error
    if pairs.size and (pairs.min() < 0 or pairs.max() >= n_documents):
        raise InputError(f"{name} links document {pairs.max()}; there are {n_documents:,}.")
    both = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int32)
    graph = csr_array((np.ones(len(both), np.float32), (both[:, 0], both[:, 1])), shape=(n_documents, n_documents))
    graph.sum_duplicates()
    graph.data[:] = 1
    return graph
