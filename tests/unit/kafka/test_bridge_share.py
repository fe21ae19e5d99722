"""When a bridge stops believing what it reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.kafka.bridge_share import SEEN, BadShare


def test_half_may_be_bad_and_one_more_may_not() -> None:
    share = BadShare(0.5)
    assert all(share.note(bad=number % 2 == 0) for number in range(3 * SEEN))
    assert share.bad == SEEN // 2
    assert share.note(bad=True)  # a bad one leaves as this one comes
    assert not share.note(bad=True)


def test_only_bad_records_stop_after_half_a_window_of_them() -> None:
    share = BadShare(0.5)
    assert [share.note(bad=True) for _ in range(SEEN // 2 + 2)] == [*[True] * (SEEN // 2), False, False]


def test_a_share_of_one_never_stops_and_a_share_of_none_at_the_first() -> None:
    assert all(BadShare(1.0).note(bad=True) for _ in range(3 * SEEN))
    share = BadShare(1.0)
    assert all(share.note(bad=True) for _ in range(3 * SEEN))
    assert not BadShare(0.0).note(bad=True)
    assert BadShare(0.0).note(bad=False)


@given(st.lists(st.booleans(), max_size=2 * SEEN), st.lists(st.booleans(), max_size=SEEN))
def test_a_bridge_that_starts_again_goes_on_where_the_last_one_was(before: list[bool], after: list[bool]) -> None:
    one = BadShare(0.5)
    for bad in before:
        one.note(bad=bad)
    other = BadShare(0.5, one.mark)
    assert [one.note(bad=bad) for bad in after] == [other.note(bad=bad) for bad in after]
    assert len(one.mark) <= 2 + SEEN // 4


@pytest.mark.parametrize("mark", ["", "1", "2:ff", "1:xyz", "1:" + "f" * 100, "somebody else's"])
def test_what_nobody_understands_is_nothing(mark: str) -> None:
    assert BadShare(0.5, mark).bad == 0
