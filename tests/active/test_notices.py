import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgcn import WGCNTextClassifier
from wgcn.active.notices import notices, shared_texts
from wgcn.base.errors import InputError, WGCNWarning
from wgcn.io.read import read_rows
from wgcn.labels.reading import read_labels
from wgcn.text.corpus import Observed

PLAIN = ["red wine", "white wine and cheese", "a fast car", "slow cars on the road"]


def said(texts: list[str], y: Any, **options: Any) -> list[str]:
    observed = Observed(texts)
    assert list(observed) == texts
    return notices(observed, *read_labels(y), **options)


def test_nothing_is_said_of_usual_texts() -> None:
    assert said(PLAIN, ["a", "a", "b", "b"]) == []
    assert said(PLAIN * 50, ["a", "a", "b", None] * 50) == []
    assert said(PLAIN, [["a"], ["a", "b"], [], ["b"]]) == []


CHINESE = ["我今天去商店买了一些水果和蔬菜", "这部电影非常好看我很喜欢里面的演员"]
THAI = ["วันนี้ฉันไปตลาดซื้อผลไม้และผัก", "ภาพยนตร์เรื่องนี้สนุกมากฉันชอบนักแสดง"]
SEGMENTED = ["我 今天 去 商店 买 了 一些 水果", "这 部 电影 非常 好看 我 很 喜欢"]
KOREAN = ["오늘 시장에 가서 과일과 채소를 샀다", "이 영화는 정말 재미있고 배우들이 좋다"]


MIXED = ["Yesterday's meeting: 这部电影非常好看我很喜欢里面的演员", "Please note that 我今天去商店买了一些水果和蔬菜"]


@pytest.mark.parametrize("texts", [CHINESE, THAI, MIXED, [*CHINESE, "four times as many letters in English texts"]])
def test_scripts_without_blanks_need_another_tokenizer(texts: list[str]) -> None:
    labels = ["a", "b", "a"][: len(texts)]
    [notice] = said(texts, labels)
    assert 'tokenizer="characters"' in notice
    assert "--tokenizer characters" in notice
    assert said(texts, labels, own_tokenizer=True) == []


@pytest.mark.parametrize("texts", [CHINESE, THAI, ["a" * 60, "b" * 80]])
def test_texts_without_blanks(texts: list[str]) -> None:
    [notice] = said(texts, ["a", "b"])
    assert "count as one word" in notice
    assert said(texts, ["a", "b"], own_tokenizer=True) == []


@pytest.mark.parametrize(
    "texts",
    [
        SEGMENTED,
        KOREAN,
        ["see https://example.org/a/b/c?d=e here", "a talk of 東京 in 2024"],
        ["a long English text that only quotes a proverb of a few words", "there is none: 这部电影非常好看我"],
        ["👍🏽👍🏽 ❤️", "№ — … «»"],
        ["", "123 456"],
    ],
)
def test_texts_with_blanks(texts: list[str]) -> None:
    assert said(texts, ["a", "b"]) == []


def test_many_empty_texts() -> None:
    texts, y = [*PLAIN, "", " \n", "", "\t", ""], ["a", "a", "b", "b", *"aaaaa"]
    [notice] = said(texts, y)
    assert notice.startswith("5 of 9 texts (56%) are empty")
    assert said(texts[:-1], y[:-1]) == []
    assert said(PLAIN * 15 + [""] * 5, ["a", "a", "b", "b"] * 15 + [None] * 5) == []


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "a"]])
def test_labelled_texts_that_are_empty_are_no_copies_that_contradict(labels: list[str]) -> None:
    texts, y = [f"text {i}" for i in range(48)], ["a", "b"] * 24
    [notice] = said([*texts, "", " \n"], [*y, *labels])
    assert notice.startswith("2 of 50 labelled texts (4%) are empty")
    assert said([*texts, ""], [*y, "a"]) == []
    [notice] = said([*texts, *[""] * 6], [*y, *["a", "b"] * 3])
    assert notice.startswith("6 of 54 texts (11%) are empty")


def test_labels_that_differ_by_case_or_blanks() -> None:
    [notice] = said(PLAIN, ["Spam", "spam ", "ham", "big  ham"])
    assert "'Spam' and 'spam '" in notice
    assert "ham'" not in notice.replace("'spam '", "")
    assert said(PLAIN, [1, 2, 2, 1]) == []


def test_a_class_of_one_text_among_large_ones() -> None:
    texts = [f"text {i}" for i in range(41)]
    [notice] = said(texts, ["a"] * 20 + ["b"] * 20 + ["slip"])
    assert notice.startswith("The class 'slip' has one labelled text")
    many = said(
        [f"text {i}" for i in range(64)], ["a"] * 15 + ["b"] * 15 + ["c"] * 15 + ["d"] * 15 + list("efg") + ["a"]
    )
    assert many[0].startswith("3 classes ('e', 'f', 'g') have one")
    assert said(PLAIN, ["a", "a", "b", "c"]) == []  # the beginning of labelling


def test_swapped_columns() -> None:
    long = [f"sentence number {i} about something or other" for i in range(60)]
    assert ["look swapped" in notice for notice in said(["spam", "ham", "spam"] * 20, long)].count(True) == 1
    assert not any("swapped" in notice for notice in said(long, ["spam", "ham", "spam"] * 20))
    names = [f"product {i}" for i in range(60)]  # one text per class, but texts are texts
    assert not any("swapped" in notice for notice in said(long, names))


def test_copies_with_other_labels() -> None:
    texts = [f"text {i}" for i in range(48)]
    [notice] = said([*texts, "text 0", "text 1"], [*["a", "b"] * 24, "b", "a"])
    assert notice.startswith("4 labelled texts (8%) have a copy with another label")
    assert said([*texts, "text 0", "text 1"], [*["a", "b"] * 24, "a", "b"]) == []
    assert said([*texts, "text 0", "text 1"], [*["a", "b"] * 24, None, None]) == []


def test_the_sample_is_small_and_spread_evenly() -> None:
    observed = Observed(str(i) for i in range(10_000))
    assert sum(1 for _ in observed) == observed.n == 10_000
    places = np.array(observed.sample, int)
    assert 128 <= len(places) < 256
    assert len(set(np.diff(places))) == 1
    assert places[-1] > 9900


def test_shared_texts() -> None:
    assert shared_texts(PLAIN, ["a new text", ""]) is None
    notice = shared_texts([*PLAIN, ""], ["Red wine ", "a new text", "a fast car", ""])
    assert notice is not None
    assert notice.startswith("2 of 3 test texts")


def test_a_fit_warns_once_and_goes_on() -> None:
    with pytest.warns(WGCNWarning, match="'drink' and 'drink '") as caught:
        model = WGCNTextClassifier().fit(PLAIN, ["drink", "drink ", "drive", "drive"])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.classes_.tolist() == ["drink", "drink ", "drive"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WGCNTextClassifier(tokenizer=list).fit(CHINESE, ["a", "b"])
        WGCNTextClassifier(tokenizer="characters").fit(CHINESE, ["a", "b"])
    with pytest.warns(WGCNWarning, match="characters") as caught:
        WGCNTextClassifier().fit(CHINESE, ["a", "b"])
    assert len(caught) == 1


@pytest.mark.parametrize("as_texts", [list, iter])
def test_a_fit_refuses_swapped_columns_before_it_begins(as_texts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgcn.estimators.matrix.WGCNClassifier.train", None)
    long = [f"sentence number {i} about something or other" for i in range(60)]
    for given, message in ((["spam", "ham", "spam"] * 20, "look swapped"), (long, "is the text itself")):
        with pytest.raises(InputError, match=message):
            WGCNTextClassifier().fit(as_texts(given), long)
    with pytest.raises(InputError, match="look swapped"):
        WGCNTextClassifier().learning_curve(["spam", "ham", "spam"] * 20, long)


def test_strings_that_were_missing_values() -> None:
    y = np.array(["a", None, "b", None]).astype(str)
    [notice] = said(PLAIN, y)
    assert notice.startswith("2 labels often stand for a missing one: 'None' (2)")
    assert said(PLAIN, ["a", None, "b", None]) == []
    assert said(PLAIN, ["a", "none", "b", "Namibia"]) == []


@pytest.mark.skipif("WGCN_DATA" not in os.environ, reason="WGCN_DATA, the folder of the benchmark sets, is not set")
@pytest.mark.parametrize("name", ["mr", "r8", "r52", "ohsumed", "20ng"])
def test_benchmark_sets_give_no_false_alarm(name: str) -> None:
    path = Path(os.environ["WGCN_DATA"]) / "text" / name / "train.tsv.gz"
    if not path.exists():
        pytest.skip(f"needs the benchmark data: WGCN_DATA has no set {name}")
    labels, texts = zip(*read_rows(path, [0, 1], header=False), strict=True)
    expected = ["The class 'platinum' has one labelled text"] if name == "r52" else []
    assert [notice[:42] for notice in said([text or "" for text in texts], list(labels))] == expected
