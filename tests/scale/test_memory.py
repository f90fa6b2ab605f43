import pytest

from wgcn.base.errors import InputError
from wgcn.scale.workers import Limits, memory_bytes


@pytest.mark.parametrize(
    ("given", "expected"), [("4GB", 4 * 10**9), ("512 MiB", 2**29), ("1.5gb", 15 * 10**8), ("2000000000", 2 * 10**9)]
)
def test_sizes_have_units(given: str, expected: int) -> None:
    assert memory_bytes(given) == expected


@pytest.mark.parametrize("given", ["", "GB", "4 apples", "-4GB", "4e9", "1" * 40])
def test_what_is_no_size_is_an_error(given: str) -> None:
    with pytest.raises(InputError, match="is no size"):
        memory_bytes(given)


def test_more_workers_hold_less_each() -> None:
    one, four = (Limits.of(4 * 10**9, n) for n in (1, 4))
    assert one.tokens > four.tokens
    assert one.merged > four.merged
    processes = Limits.of(4 * 10**9, 4, 4)
    assert processes.tokens < four.tokens


def test_too_little_memory_is_an_error_that_says_how_much_is_needed() -> None:
    with pytest.raises(InputError, match=r"900 MB of memory are too few: 2 workers need 1,000 MB"):
        Limits.of(9 * 10**8, 2)
