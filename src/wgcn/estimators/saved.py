"""A trained `Session` as part of a model folder, so that it goes on in another process.

It holds the training texts as token ids, which give back their words in order, with labels and weights, and
what the last fit found: term counts, the word graph, duals, held-out scores and the teacher's space and neighbours.
Nothing that decides about a result is computed again, so it goes on with the same bits. Only arrays and plain JSON are
read, and each value is checked: what a hostile file holds is refused, or gives a model of finite numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.errors import CONTROLS, StoreError
from wgcn.estimators.matrix import WGCNClassifier
from wgcn.estimators.preparation import Preparation, Prepared
from wgcn.estimators.session import Session
from wgcn.graph.word_graph import GRAPH_SCHEMA, WordGraph
from wgcn.labels.reading import Labels
from wgcn.labels.targets import Targets
from wgcn.linear.calibration import HeldOut
from wgcn.linear.model import LinearSettings, Scales
from wgcn.linear.task import LinearTrained
from wgcn.linear.tuning import Tuned
from wgcn.model.text_model import TextModel
from wgcn.semi.seed_words import GivenSeeds, SeedWord
from wgcn.semi.space import WordSpace
from wgcn.semi.teacher import Found, Teacher
from wgcn.store.folder import Folder, Schema, SessionFiles, check_keys, csr_tensors
from wgcn.text.corpus import Tokens

VERSION = 1  # of the session alone: a model can be read whatever the version of its session
_PARAMETERS: Schema = {
    **{"tokenizer": str, "ngram_range": list, "min_count": (int, NoneType), "stop_words": (list, NoneType)},
    **{"window": int, **dict.fromkeys(("alpha", "subwords", "C"), (int, float)), "tune": bool},
    **{"class_weight": (list, str, NoneType), "class_prior": (list, str, NoneType), "n_jobs": (int, NoneType)},
}
_SCHEMA: Schema = {
    **{"version": int, "parameters": dict, "graph": dict, "fixed": str, "is_cited": bool, "n_background": int},
    **{"n_in_graph": int, "n_copies": int, "seconds": (int, float), "seeds": (list, NoneType)},
    **{"seed_words": (list, NoneType), "tuned": (list, NoneType), "history": list, "scale": list},
    **{"held_out_accuracy": (int, float, NoneType), "n_held_out": int, "space": (list, NoneType)},
}
_MANY_JOBS = 4096  # threads that a file may ask for
_STEPS = 20  # of label propagation, by which a graph is checked
_NUMBER, _SIGNED = (int, float), (-(2.0**63), 2.0**63)


# Writing


def session_files(session: Session, parameters: Mapping[str, Any], check: Callable[[Folder], object]) -> SessionFiles:
    """Return what a session is saved as, with the parameters of the estimator; for `check` see `SessionFiles`."""
    prepared, classes, trained = session.prepared, session.labels.classes.tolist(), session.classifier.trained_
    graph, place = session.classifier.word_graph_, {name: i for i, name in enumerate(classes)}
    found = None if trained.teacher is None else trained.teacher.found
    seeds = session.seeds and zip(session.seeds.classes, session.seeds.seeds, session.seeds.struck, strict=True)
    config = {
        "version": VERSION,
        "parameters": {name: _plain(value) for name, value in parameters.items()},
        "graph": graph.settings,
        "fixed": session.fixed,
        "is_cited": prepared.word_graph is None,
        "n_background": prepared.n_background,
        "n_in_graph": prepared.n_in_graph,
        "n_copies": trained.n_copies,
        "seconds": prepared.seconds,
        "seeds": seeds and [[place[name], list(own), list(struck)] for name, own, struck in seeds],
        "seed_words": seeds and session.seed_words and [list(map(list, own)) for own in session.seed_words.values()],
        "tuned": trained.tuned and list(trained.tuned),
        "history": [{name: float(value) for name, value in each.items()} for each in trained.history],
        "scale": [*trained.scale[0], trained.scale[1]],
        "held_out_accuracy": trained.held_out_accuracy,
        "n_held_out": trained.n_held_out,
        "space": found and [list(block) for block in zip(found.space.weights, found.space.sizes, strict=True)],
    }
    return SessionFiles(config, {**_text_tensors(session), **graph.tensors(), **_fit_tensors(trained, found)}, check)


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it: a dict, whose keys may be numbers, as pairs."""
    if isinstance(value, Mapping):
        return [[_plain(key), _plain(each)] for key, each in value.items()]
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    if isinstance(value, np.generic):
        return value.item()
    return sorted(value) if isinstance(value, Collection) and not isinstance(value, str) else value


def _text_tensors(session: Session) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of the texts and of their labels."""
    prepared, held = session.prepared, session.labels.targets.held
    words = "".join(f"{word}\n" for word in prepared.tokens.words).encode()
    lead = prepared.leading.get(prepared.weighting.lead)
    return {
        "tokens.ids": prepared.tokens.ids,
        "tokens.offsets": prepared.tokens.offsets,
        "tokens.words": np.frombuffer(words, np.uint8),
        "digests": prepared.digests,
        **csr_tensors("counts", prepared.term_counts),
        **({} if lead is None else {"leading": lead}),
        "labelled": session.labels.labelled,
        "weight": session.weight,
        **({"targets": held} if isinstance(held, np.ndarray) else csr_tensors("targets", held)),
    }


def _fit_tensors(trained: LinearTrained, found: Found | None) -> dict[str, npt.NDArray[Any]]:
    tensors = {f"dual.{i}": dual for i, dual in enumerate(trained.duals)}
    if trained.held_out is not None:
        tensors |= {"held_out.rows": trained.held_out.rows, "held_out.scores": trained.held_out.scores}
    if found is not None:
        tensors |= {f"teacher.{name}": getattr(found, name) for name in ("words", "order", "rows")}
        tensors |= {"teacher.space": found.space.words} | csr_tensors("teacher.terms", found.terms)
        tensors |= csr_tensors("teacher.graph", found.graph)
        tensors |= {} if found.vectors is None else {"teacher.vectors": found.vectors}
    return tensors


# Reading


def read_parameters(session: Folder) -> dict[str, Any]:
    """Return the parameters of the estimator, after checking that this version can read the session."""
    path, config = session.path, session.config
    version = config.get("version") if isinstance(config, dict) else None
    if type(version) is not int or version != VERSION:
        raise StoreError(
            f"The session in {path} has version {version!r:.60}, but this wgcn reads version {VERSION} alone. "
            "TextModel.load reads the model without it; fit again to add labels."
        )
    check_keys(path, "session.json", config, _SCHEMA)
    check_keys(path, "the parameters of session.json", given := dict(config["parameters"]), _PARAMETERS)
    for name in ("class_weight", "class_prior"):
        if isinstance(pairs := given[name], list):
            _require(session, _are_rows(pairs, (int, str), _NUMBER), name)
            given[name] = dict(pairs)
    _require(session, given["stop_words"] is None or _are(given["stop_words"], str), "stop_words")
    _require(session, abs(given["n_jobs"] or 0) <= _MANY_JOBS, "n_jobs")
    return {**given, "ngram_range": tuple(given["ngram_range"])}


def read_session(folder: Folder, session: Folder, estimator: object) -> tuple[Session, TextModel]:
    """Return the session beside the model of a folder, checked, and the model; `estimator` has its parameters."""
    config, model = session.config, TextModel.from_folder(folder)
    with session.checked():
        preparation, classifier = Preparation.of(estimator), WGCNClassifier.of(estimator)
    check_keys(session.path, "the graph of session.json", config["graph"], GRAPH_SCHEMA)
    graph = WordGraph.from_folder(Folder(session.path, config["graph"], session.tensors, session.vocabulary))
    _require(session, np.abs(graph.adjacency.data).max(initial=0) <= 1 + 1e-3, "adjacency")  # it is normalised
    prepared = _read_texts(session, model, preparation, None if config["is_cited"] else graph)
    labels, weight = _read_labels(session, model, len(prepared.digests))
    _require(session, config["fixed"] in ("", "vectors", "document_graph"), "fixed")
    seeds, seed_words = _read_seeds(session, model.classes.tolist())
    trained = _read_fit(session, model, labels, prepared)
    with session.checked():
        classifier.check_parameters(labels)
    classifier.take_labels(labels, graph)
    classifier.n_features_in_ = len(model.vocabulary)
    found = Session(prepared, classifier.resume(trained), labels, weight, seeds, seed_words, config["fixed"])
    return found, model


def _read_texts(session: Folder, model: TextModel, preparation: Preparation, graph: WordGraph | None) -> Prepared:
    config, n_terms = session.config, len(model.vocabulary)
    data = session.tensor("tokens.words", None, dtype=np.uint8, within=(0, 255)).tobytes()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise _unsound(session, "tokens.words") from error
    *words, end = text.split("\n")
    _require(session, not end and words and words[0] and not CONTROLS.search(text), "tokens.words")
    _require(session, all(word < after for word, after in pairwise(words)), "tokens.words")
    ids = session.tensor("tokens.ids", None, dtype=np.int32, within=(0, len(words) - 1))
    _require(session, np.bincount(ids, minlength=len(words)).all(), "tokens.ids")  # no word without a token
    offsets = session.tensor("tokens.offsets", None, dtype=np.int64, within=(0, len(ids)))
    digests = session.tensor("digests", None, dtype=np.int64, within=_SIGNED)
    n_texts, n = len(offsets) - 1, len(digests)
    _require(session, n_texts > 0 and (np.diff(offsets) >= 0).all(), "tokens.offsets")
    _require(session, offsets[0] == 0 and offsets[-1] == len(ids), "tokens.offsets")
    _require(session, 0 < n == n_texts - config["n_background"] <= n_texts, "digests")
    _require(session, 0 <= config["n_in_graph"] <= n_texts, "n_in_graph")
    types = np.uint8, np.uint16, np.uint32
    counts, lead, leading = session.csr("counts", (n, n_terms), types, within=(1, 2**32)), model.weighting.lead, {}
    if "leading" in session.tensors:
        leading[lead] = session.tensor("leading", counts.nnz, dtype=np.uint8, within=(0, 255))
    return Prepared(
        preparation=preparation,
        vocabulary=model.vocabulary,
        weighting=model.weighting,
        word_graph=graph,
        n_background=config["n_background"],
        seconds=float(config["seconds"]),
        tokens=Tokens(ids, offsets, words),
        digests=digests,
        term_counts=counts,
        leading=leading,
        n_in_graph=config["n_in_graph"],
    )


def _read_labels(session: Folder, model: TextModel, n_texts: int) -> tuple[Labels, npt.NDArray[np.float64]]:
    n_classes, multilabel = len(model.classes), model.scorer.multilabel
    weight = session.tensor("weight", None, dtype=np.float64, within=(0, 1e300))
    labelled = session.tensor("labelled", len(weight), dtype=np.bool_, within=(0, 1))
    n = int(labelled.sum())
    _require(session, 0 < len(weight) <= n_texts, "weight")
    if "targets" in session.tensors:
        targets = Targets(session.tensor("targets", n, dtype=np.int32, within=(0, n_classes - 1)), n_classes)
    else:
        _require(session, multilabel, "targets")
        targets = Targets(session.csr("targets", (n, n_classes), (np.float32,), within=(1, 1)), n_classes)
    return Labels(model.classes, labelled, targets, multilabel), weight


def _read_seeds(session: Folder, classes: list[Any]) -> tuple[GivenSeeds | None, dict[Any, list[SeedWord]] | None]:
    seeds, words = session.config["seeds"], session.config["seed_words"]
    if seeds is None:
        return None, None
    sound = _are_rows(seeds, (int,), (list,), (list,)) and all(_are([*own, *more], str) for _, own, more in seeds)
    places = [place for place, _, _ in seeds] if sound else []
    sound = sound and 0 < len(set(places)) == len(places) and all(0 <= place < len(classes) for place in places)
    _require(session, sound and all(own for _, own, _ in seeds), "seeds")
    given = GivenSeeds(tuple(classes[i] for i in places), *(tuple(tuple(each[i]) for each in seeds) for i in (1, 2)))
    sound = isinstance(words, list) and len(words) == len(classes)
    sound = sound and all(type(own) is list and _are_rows(own, (str,), _NUMBER, (int,), (bool,)) for own in words)
    _require(session, sound, "seed_words")
    return given, {name: [SeedWord(*word) for word in own] for name, own in zip(classes, words, strict=True)}


def _read_fit(session: Folder, model: TextModel, labels: Labels, prepared: Prepared) -> LinearTrained:
    config, n, n_classes, n_labelled = session.config, len(prepared.digests), len(model.classes), len(labels.targets)
    history, scale, tuned = config["history"], config["scale"], config["tuned"]
    sound = all(isinstance(each, dict) and _are(list(each.values()), *_NUMBER) for each in history)
    _require(session, sound, "history")
    _require(session, _are_rows([scale], _NUMBER, _NUMBER, (int,)) and 0 <= min(scale) <= max(scale) < 1e9, "scale")
    if tuned is not None:
        names = {"C", "naive_bayes", "lead"}
        sound = _are_rows([tuned], (dict,), _NUMBER, _NUMBER, (int,), (int,)) and tuned[0].keys() == names
        _require(session, sound and _are(list(tuned[0].values()), *_NUMBER), "tuned")
        with session.checked():
            LinearSettings(C=tuned[0]["C"], naive_bayes=tuned[0]["naive_bayes"])
    _require(session, "dual.0" in session.tensors, "dual.0")
    duals = []
    for name, most in (("dual.0", n_labelled), ("dual.1", n)):
        if name in session.tensors:
            duals.append(session.tensor(name, None, None))
            n_rows, n_columns = duals[-1].shape
            fits = n_columns in (0, n_classes, 1 if n_classes == 2 and not labels.multilabel else 0)
            _require(session, n_rows <= most and fits, name)
    held_out = None
    if "held_out.rows" in session.tensors:
        rows = session.tensor("held_out.rows", None, dtype=np.int64, within=(0, n_labelled - 1))
        held_out = HeldOut(rows, session.tensor("held_out.scores", len(rows), n_classes))
    return LinearTrained(
        scorer=model.scorer,
        history=history,
        tuned=tuned and Tuned(*tuned),
        held_out_accuracy=config["held_out_accuracy"],
        n_held_out=config["n_held_out"],
        held_out=held_out,
        duals=duals,
        teacher=None if config["space"] is None else _read_teacher(session, n, prepared.preparation.n_jobs),
        # What the model was made of is not kept: there is the model.
        own_rows=np.empty((0, n_classes), np.float32),
        factor=0.0,
        subword_rows=None,
        scale=(Scales(*map(float, scale[:2])), scale[2]),
        adjacency=csr_array((0, 0), dtype=np.float32),
        n_copies=config["n_copies"],
        measured=model.report.get("measured", ""),
    )


def _read_teacher(session: Folder, n_texts: int, n_jobs: int | None) -> Teacher:
    n_words, blocks = len(session.vocabulary), session.config["space"]
    words = session.tensor("teacher.words", None, dtype=np.int64, within=(0, n_words - 1))
    order = session.tensor("teacher.order", None, dtype=np.int32, within=(0, n_texts - 1))
    rows = session.tensor("teacher.rows", n := len(order), dtype=np.int64, within=(0, n_texts - 1))
    _require(session, (np.diff(words) > 0).all(), "teacher.words")
    for name, places in (("teacher.order", order), ("teacher.rows", rows)):
        _require(session, np.array_equal(np.sort(places), np.arange(n)), name)
    table = session.tensor("teacher.space", len(words), None)
    sound = bool(blocks) and _are_rows(blocks, _NUMBER, (int,)) and all(0 < weight < 1e3 for weight, _ in blocks)
    _require(session, sound and all(size >= 0 for _, size in blocks), "space")
    _require(session, sum(size for _, size in blocks) == table.shape[1], "space")
    space = WordSpace(table, *(tuple(each) for each in zip(*blocks, strict=True)))
    vectors = session.tensor("teacher.vectors", len(words), None) if "teacher.vectors" in session.tensors else None
    terms = session.csr("teacher.terms", (n, len(words)), (np.float32,), within=(0, 1 + 1e-3))
    graph = session.csr("teacher.graph", (n, n), (np.float32,), within=(0, 1 + 1e-3), in_order=False)
    reached = np.ones(n)
    for _ in range(_STEPS):  # powers of a normalised graph keep the length of a vector or shorten it
        reached = graph @ reached
        _require(session, reached.max() <= 1.01 * np.sqrt(n), "teacher.graph")
    return Teacher.of_found(Found(n_words, words, space, vectors, terms, order, graph, rows), n_jobs)


# Checks


def _are(values: list[Any], *kinds: type) -> bool:
    return all(type(value) in kinds for value in values)


def _are_rows(values: list[Any], *columns: tuple[type, ...]) -> bool:
    """Whether these are lists with one value of each of these types."""
    rows = (type(row) is list and len(row) == len(columns) and row for row in values)
    return all(row and all(type(value) in kinds for value, kinds in zip(row, columns, strict=True)) for row in rows)


def _unsound(session: Folder, what: str) -> StoreError:
    return StoreError(f"{session.path}: {what!r} is not what a session has. TextModel.load reads the model without it.")


def _require(session: Folder, sound: object, what: str) -> None:
    if not sound:
        raise _unsound(session, what)
