"""Any sequence of decisions adds up to what a plain model of it says."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgcn.base.errors import InputError
from wgcn.label.decisions import Decision, Entry, State, class_name, fold

N_TEXTS = 4
TEXT, LABEL = st.integers(0, N_TEXTS - 1), st.integers(1, 4)
DECISIONS = st.one_of(
    st.builds(Decision, st.sampled_from(["label", "keep"]), TEXT, LABEL),
    st.builds(Decision, st.sampled_from(["unlabel", "skip"]), TEXT),
    st.builds(Decision, st.just("add"), st.none(), st.none(), st.sampled_from("abcd")),
    st.builds(Decision, st.just("rename"), st.none(), LABEL, st.sampled_from("abcdef")),
    st.builds(Decision, st.just("merge"), st.none(), LABEL, LABEL.map(str)),
    st.builds(Decision, st.just("seeds"), st.none(), LABEL, st.lists(st.sampled_from("xyz")).map(json.dumps)),
)


class Plain:
    """The same with names alone: a merge changes the labels themselves."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.labels: dict[int, int] = {}
        self.skipped: set[int] = set()
        self.merged: dict[int, int] = {}
        self.kept: set[int] = set()

    def apply(self, decision: Decision, number: int) -> None:
        kind, text, label, value = decision
        if text is not None and kind != "keep":
            self.skipped.discard(text)
        while kind in ("label", "keep") and label in self.merged:
            label = self.merged[label]
        if kind == "label":
            assert text is not None
            assert label is not None
            if self.labels.get(text) != label:
                self.kept.discard(text)
            self.labels[text] = label
        elif kind == "keep":
            assert text is not None
            if self.labels.get(text) == label:
                self.kept.add(text)
            else:
                self.kept.discard(text)
        elif kind == "unlabel":
            self.labels.pop(text or 0, None)
            self.kept.discard(text or 0)
        elif kind == "skip":
            self.skipped.add(text or 0)
        elif kind == "add":
            self.names[number] = value
        elif kind == "rename":
            self.names[label or 0] = value
        elif kind == "merge":
            assert label is not None
            self.merged[label] = int(value)
            del self.names[label]
            self.labels = {text: int(value) if own == label else own for text, own in self.labels.items()}


@given(st.lists(DECISIONS, max_size=30))
def test_a_log_adds_up_to_what_a_plain_model_says(decisions: list[Decision]) -> None:
    state, plain, entries = State(N_TEXTS), Plain(), []
    for seq, decision in enumerate(decisions, 1):
        try:
            checked = state.checked(decision)
        except InputError:
            continue
        entries.append(Entry(seq, 0.0, "me", checked))
        state.apply(entries[-1])
        plain.apply(checked, checked.label or 0)
    assert state.labels == plain.labels
    assert state.skipped == plain.skipped
    assert {text for text in range(N_TEXTS) if state.is_kept(text)} == plain.kept
    assert {number: each.name for number, each in state.live.items()} == plain.names
    again = fold(entries, N_TEXTS)
    assert again == replace(state, seq=again.seq)


@given(st.lists(DECISIONS, min_size=1, max_size=20), st.data())
def test_an_undone_entry_is_as_if_it_were_not_there(decisions: list[Decision], data: st.DataObject) -> None:
    state, entries = State(N_TEXTS), []
    for decision in [Decision("add", value="a"), Decision("add", value="b"), *decisions]:
        try:
            entries.append(Entry(len(entries) + 1, 0.0, "me", state.checked(decision)))
            state.apply(entries[-1])
        except InputError:
            continue
    undone = data.draw(st.integers(1, len(entries)))
    undo = Entry(len(entries) + 1, 0.0, "me", Decision("undo", value=str(undone)))
    without = [entry for entry in entries if entry.seq != undone]
    try:
        expected = fold(without, N_TEXTS)
    except InputError:
        with pytest.raises(InputError):
            fold(entries, N_TEXTS, without=undone)
        return
    found = fold([*entries, undo], N_TEXTS)
    assert found == replace(expected, seq=found.seq)


def test_names_are_as_a_file_of_labels_gives_them_back() -> None:
    assert [class_name(name) for name in ("TRUE", " a  b ", "1.0")] == ["true", "a b", "1"]
    for name in ("", "  ", "x" * 101, "a\x00b", "\u202eevil"):
        with pytest.raises(InputError, match="name"):
            class_name(name)


def test_what_does_not_fit_is_refused() -> None:
    state = fold([Entry(1, 0.0, "me", Decision("add", None, 1, "a"))], N_TEXTS)
    for decision, words in [
        (Decision("label", N_TEXTS, 1), "no text"),
        (Decision("label", -1, 1), "no text"),
        (Decision("label", 0, 2), "no class"),
        (Decision("add", value="a"), "already"),
        (Decision("merge", label=1, value="1"), "another"),
        (Decision("seeds", label=1, value="[1]"), "list of words"),
        (Decision("seeds", label=1, value='["-a"]'), "at least one"),
        (Decision("seeds", label=1, value='["\\ud800"]'), "list of words"),
        (Decision("seeds", label=1, value="[" * 30_000), "list of words"),
        (Decision("merge", label=1, value="9" * 5_000), "another"),
        (Decision("drop"), "no decision"),
        (Decision("undo"), "no decision"),
    ]:
        with pytest.raises(InputError, match=words):
            state.checked(decision)


def test_seed_words_stay_with_names_that_the_command_line_can_give() -> None:
    """`wgcn fit --seed CLASS=WORDS` ends a name at the first "="."""
    decisions = [
        Decision("add", None, 1, "a"),
        Decision("add", None, 2, "b=c"),
        Decision("add", None, 3, "d"),
        Decision("seeds", None, 1, '["wine"]'),
    ]
    state = fold([Entry(seq, 0.0, "me", decision) for seq, decision in enumerate(decisions, 1)], N_TEXTS)
    for decision in (
        Decision("rename", label=1, value="a=b"),
        Decision("merge", label=1, value="2"),
        Decision("seeds", label=2, value='["car"]'),
    ):
        with pytest.raises(InputError, match="'=' in its name"):
            state.checked(decision)
    assert state.checked(Decision("rename", label=3, value="d=e")).value == "d=e"
    assert state.checked(Decision("merge", label=3, value="2")).value == "2"
