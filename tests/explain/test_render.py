"""Explanations for people: nothing in a text becomes a control sequence or markup."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wgcn import TextModel, WGCNTextClassifier
from wgcn.explain.render import _pieces, as_html, as_text, find_tokens, harmless
from wgcn.text.tokenize import characters, fold, text_gcn, words

TEXTS = ["red wine", "white wine", "red and white wine", "fast car", "slow car", "a fast red car"]
HOSTILE = "red \x1b[31mwine\x07 <script>alert('car')</script> \"&quot; \u202efast\u202c\r\n\x9b2J \ud800 'onclick='x"
COLOUR = re.compile("\x1b\\[(?:38;5;16;48;5;\\d+|0)m")


@pytest.fixture(scope="module")
def model() -> TextModel:
    model = WGCNTextClassifier(n_jobs=1).fit(TEXTS, ["<b>drink"] * 3 + ["drive"] * 3).model_
    return replace(model, classes=np.array(["<b>drink", "drive\x1b[1m"]))  # which no fit would take


@given(st.text(max_size=60))
@example(HOSTILE)
def test_no_character_does_anything(text: str) -> None:
    assert all(c.isprintable() or c in "\u200c\u200d" for c in harmless(text))
    assert all(c.isprintable() or c in "\u200c\u200d\n\t" for c in harmless(text, line_breaks=True))
    harmless(text).encode()


@given(st.text(max_size=60))
@example("It's İstanbul, naïve ΣΑΣ’s")
def test_words_are_found_where_they_are(text: str) -> None:
    spans = find_tokens(text, words(text))
    if len(text.lower()) == len(text):
        assert spans is not None
    if spans is not None:
        assert [end for _, end in spans] == sorted(end for _, end in spans)
        for (begin, end), token in zip(spans, words(text), strict=True):
            assert token in "".join(fold(c) for c in text[begin:end]) + fold(text[begin:end])


def test_tokens_of_other_functions_are_found_or_not() -> None:
    text = "It isn't  GOOD!"
    spans = find_tokens(text, text_gcn(text))
    assert spans is not None
    assert [text[begin:end] for begin, end in spans] == ["It", "is", "n't", "GOOD", "!"]
    assert find_tokens("running", ["ran"]) is None


@given(st.text("今天気ก็a' ,👍", max_size=20))
@example("今天天天天気 天天気今")
def test_pairs_of_characters_overlap(text: str) -> None:
    tokens = characters(text)
    spans = find_tokens(text, tokens)
    assert spans is not None
    assert [text[begin:end] for begin, end in spans] == tokens
    covered = {place for begin, end in spans for place in range(begin, end)}
    assert "".join(c for i, c in enumerate(text) if i not in covered).strip("' ,\u0e47") == ""


def test_where_pairs_overlap_a_character_has_its_share_of_both() -> None:
    texts = ["白葡萄酒", "红葡萄酒和奶酪", "快车在路上", "慢车在桥上"]
    model = WGCNTextClassifier(tokenizer="characters", n_jobs=1).fit(texts, ["drink", "drink", "drive", "drive"])
    why = model.explain(["一杯葡萄酒! ok"])[0]
    assert why.label == "drink"
    assert as_text(why).splitlines()[0] == "一杯葡萄酒! ok"
    pieces = list(_pieces(why, 0))
    assert [piece for piece, _ in pieces] == ["一", "杯", "葡", "萄", "酒", "! ", "ok"]
    shares = why.shares("drink").tolist()  # of 一杯, 杯葡, 葡萄, 萄酒, ok
    np.testing.assert_allclose(pieces[3][1], (shares[2] + shares[3]) / 2)
    np.testing.assert_allclose(sum(share for _, share in pieces), sum(shares))


def test_plain_text_has_the_words_their_parts_and_the_sums(model: TextModel) -> None:
    why = model.explain(["A glass of red wine"])[0]
    shown = as_text(why)
    assert "\x1b" not in shown
    lines = shown.splitlines()
    assert lines[0] == "A glass of red wine"
    assert lines[2] == "predicted  <b>drink"
    assert re.fullmatch(r"explained  <b>drink \(probability \d+\.\d%, score [+-]\d\.\d{3}\)", lines[3])
    assert lines[4].startswith(r"runner-up  drive\x1b[1m (probability ")
    assert lines[5] == "unknown    glass, of"
    row = next(line for line in lines if line.startswith("  wine "))
    score, own = map(float, row.split()[1:3])
    assert why.own is not None
    place = why.terms.index("wine")
    assert (score, own) == (round(why.contributions[place, 0], 3), round(why.own[place, 0], 3))
    parts = [float(part.split()[-1]) for part in row.split("  ")[-1].split(", ")]
    assert abs(score - own - sum(parts)) < 0.003
    assert lines[-1] == f"all terms and bias   {why.scores[0]:>+8.3f}"


def test_another_class_can_be_explained(model: TextModel) -> None:
    why = model.explain(["red wine"])[0]
    shown = as_text(why, "drive\x1b[1m")
    assert "predicted  <b>drink\nexplained  drive" in shown
    assert "\nhighest    <b>drink (" in shown
    assert "against drive" in shown


def test_words_are_shaded_by_their_part_and_others_are_not(model: TextModel) -> None:
    shown = as_text(model.explain(["a red wine, fast"])[0], "<b>drink", colour=True).splitlines()[0]
    painted = dict(re.findall("\x1b\\[38;5;16;48;5;(\\d+)m([^\x1b]*)\x1b\\[0m", shown))
    assert painted["75"] == "wine"  # the strongest blue
    assert "fast" in (painted.get(shade) for shade in ("230", "223", "216", "209"))
    assert COLOUR.sub("", shown) == "a red wine, fast"


@given(text=st.one_of(st.just(HOSTILE), st.text(max_size=30).map(lambda text: f"red {text} car")))
@settings(max_examples=40)
def test_a_hostile_text_is_shown_and_does_nothing_in_a_terminal(model: TextModel, text: str) -> None:
    why = model.explain([text])[0]
    for colour in (False, True):
        for shown in (as_text(why, colour=colour), as_text(replace(why, tokens=["\x1b[2J"], holders=[[0]]))):
            rest = COLOUR.sub("", shown)
            assert all(c.isprintable() or c in "\n\t\u200c\u200d" for c in rest)


class Page(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@given(text=st.one_of(st.just(HOSTILE), st.text("<>&\"'/ab=!-\x00\x1b\u202e\ud800 ", max_size=40)))
@settings(max_examples=40)
def test_a_hostile_text_is_no_markup_in_a_page(model: TextModel, text: str) -> None:
    page = as_html(model.explain([f"red {text} car", text]))
    parsed, plain = Page(page), Page(as_html(model.explain(["red car glass", ""])))
    assert parsed.tags - {"table", "tr", "th", "td", "span"} == plain.tags - {"table", "tr", "th", "td", "span"}
    assert parsed.attributes <= {"charset", "class", "content", "http-equiv", "lang", "name", "title"}
    assert harmless(f"red {text} car", True).strip() in parsed.text
    page.encode()


def test_a_page_asks_for_nothing_and_serves_light_and_dark(model: TextModel) -> None:
    page = as_html(model.explain(["a red wine, fast", "zzz"]))
    parsed = Page(page)
    assert not parsed.tags & {"script", "img", "link", "iframe", "object", "base", "form", "a", "style_"}
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page
    assert not re.search(r"url\(|@import|https?:|//", page)
    assert "no word of the text is known" in parsed.text
    assert page.count("<section>") == 2


def test_without_a_split_there_are_no_columns_for_it(model: TextModel) -> None:
    why = replace(model, split=None).explain(["red wine"])[0]
    assert "itself" not in as_text(why)
    assert "itself" not in as_html([why])
    assert "itself" in as_text(model.explain(["red wine"])[0])


def test_many_unknown_words_and_no_class_are_said_in_short(model: TextModel) -> None:
    why = model.explain([" ".join(f"z{i}" for i in range(25))])[0]
    assert "z18, z19 and 5 more" in as_text(why)
    several = replace(model, scorer=replace(model.scorer, multilabel=True, bias=np.full(2, -9, np.float32)))
    assert "predicted  no class" in as_text(several.explain(["red wine"])[0])


def test_the_part_of_the_spelling_is_named_for_words_and_not_for_ngrams() -> None:
    texts = ["red wine", "white wines", "red and whiter wine", "fast car", "slow cars", "a faster red car"] * 2
    model = WGCNTextClassifier(n_jobs=1).fit(texts, (["drink"] * 3 + ["drive"] * 3) * 2)
    why = model.explain(["red wine winery"])[0]
    assert "red wine" in why.terms
    lines = {re.split("  +", line.strip())[0]: line for line in as_text(why, "drink").splitlines() if "+" in line}
    assert "its spelling +" in lines["wine"].replace("spelling -", "spelling +")
    assert "its spelling" not in lines.get("red wine", "")
    assert why.spelling is not None
    new = why.terms.index("winery")
    shown = f"{why.contributions[new, 0]:+.3f}"
    assert lines["winery"].split() == ["winery", shown, "+0.000", "its", "spelling", shown]
    assert "its spelling" in as_html([why], "drink")
    assert "unknown    winery" in as_text(why)
