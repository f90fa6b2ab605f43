"""What the experiments of the labelling loop share."""

import time
from pathlib import Path

import numpy as np
import pytest

from wgcn_paper.datasets import Dataset, layout
from wgcn_paper.measures.measure import Clock, held_out_dataset, split_of, svc_predict, tf_idf


def test_a_fifth_of_training_is_held_out_and_the_test_file_is_not_opened(
    made: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "text/r8"
    folder.mkdir(parents=True)
    layout.write_text_set(folder, made)
    (folder / "test.tsv.gz").write_bytes(b"not a file of texts")
    monkeypatch.setenv("WGCN_DATA", str(tmp_path))
    quick = held_out_dataset("r8")
    assert (len(quick.train), len(quick.test)) == (192, 48)
    assert made.texts is not None
    assert set(quick.texts or ()) == {made.texts[i] for i in made.train}
    assert set(quick.labels[quick.train]) == {"crude", "grain", "ship"}


def test_svc_gives_labels_and_the_margin_between_the_two_best_classes(made: Dataset) -> None:
    from sklearn.svm import LinearSVC

    split, (train, test) = split_of(made), tf_idf(made)
    [(guesses, margins)] = svc_predict(train, split.train_labels, test)
    scores = np.sort(LinearSVC(C=1.0, random_state=0).fit(train, split.train_labels).decision_function(test), axis=1)
    assert np.mean(guesses == split.test_labels) > 0.9
    np.testing.assert_allclose(margins, scores[:, -1] - scores[:, -2])


def test_svc_with_two_classes_and_with_one(made: Dataset) -> None:
    split, (train, test) = split_of(made), tf_idf(made)
    two = split.train_labels != "ship"
    [(guesses, margins)] = svc_predict(train[two], split.train_labels[two], test)
    assert set(guesses) == {"crude", "grain"}
    assert (margins >= 0).all()
    one = split.train_labels == "ship"
    [(guesses, margins)] = svc_predict(train[one], split.train_labels[one], test)
    assert set(guesses) == {"ship"}
    assert not margins.any()


def test_a_clock_tells_stages_apart() -> None:
    clock = Clock()
    clock.stop("nothing")
    ends = time.process_time() + 0.02
    while time.process_time() < ends:
        pass
    clock.stop("work")
    assert clock.seconds["work_cpu"] >= 0.02 > clock.seconds["nothing_cpu"]
    assert set(clock.seconds) == {"nothing_cpu", "nothing_wall", "work_cpu", "work_wall"}
