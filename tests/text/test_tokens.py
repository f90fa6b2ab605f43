import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wgcn.text.corpus import Tokens

TEXTS = st.lists(st.lists(st.sampled_from(["a", "b", "é", "Zoo", "12", "b2"]), max_size=4).map(" ".join), max_size=5)


@given(TEXTS, TEXTS, TEXTS)
def test_inserting_is_as_tokenising_together(first: list[str], more: list[str], last: list[str]) -> None:
    joined = Tokens.from_texts([*first, *last], "words", 1).insert(len(first), Tokens.from_texts(more, "words", 1))
    together = Tokens.from_texts([*first, *more, *last], "words", 1)
    assert joined.words == together.words == sorted(together.words)
    assert np.array_equal(joined.ids, together.ids)
    assert np.array_equal(joined.offsets, together.offsets)
