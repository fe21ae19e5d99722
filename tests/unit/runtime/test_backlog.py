"""A backlog that comes near to what the broker keeps is said once, while it lasts, and when it is over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pipeline.model.time import DAY, HOUR, SECOND
from pipeline.runtime.backlog import Backlog, is_alarming
from pipeline.runtime.faust.assignment import Assignment, Position
from pipeline.runtime.fence import Fence
from pipeline.runtime.gating import Gating

WEEK = 7 * DAY
NOW = 1_790_000_000 * SECOND


@pytest.mark.parametrize(
    ("age", "alarming"), [(0, False), (WEEK // 2 - 1, False), (WEEK // 2, True), (WEEK, True), (-HOUR, False)]
)
def test_half_of_what_the_broker_keeps_is_an_alarm(age: int, alarming: bool) -> None:
    assert is_alarming(NOW - age, NOW, WEEK) is alarming


def test_an_alarm_is_told_once_and_once_when_it_is_over() -> None:
    backlog = Backlog("assemble", WEEK)
    with capture_logs() as told:
        for hours in (1, 80, 84, 85, 100):
            backlog.look({0: NOW - hours * HOUR, 1: NOW - HOUR}, NOW)
        assert (backlog.alarm, backlog.age_s) == ("degraded: unread records wait for 100 h, and are deleted after 168 h", 360_000)
        backlog.look({0: NOW - 100 * HOUR, 1: NOW - 100 * HOUR}, NOW)
        backlog.look({1: NOW - 90 * HOUR}, NOW)
        backlog.look({}, NOW)
    assert [(one["log_level"], one["partitions"]) for one in told] == [
        ("error", ["0"]),
        ("error", ["1"]),
        ("info", ["0"]),
        ("info", ["1"]),
    ]
    assert (backlog.alarm, backlog.age_s) == ("", 0)


@given(st.lists(st.dictionaries(st.integers(0, 3), st.integers(0, 14 * 24), max_size=4), max_size=20))
def test_what_is_told_is_what_changed(looks: list[dict[int, int]]) -> None:
    backlog = Backlog("assemble", WEEK)
    alarming: set[str] = set()
    with capture_logs() as told:
        for ages in looks:
            before = len(told)
            backlog.look({partition: NOW - age * HOUR for partition, age in ages.items()}, NOW)
            for one in told[before:]:
                changed = set(one["partitions"])
                assert changed.isdisjoint(alarming) if one["log_level"] == "error" else changed <= alarming
                alarming ^= changed
            assert alarming == {str(partition) for partition, age in ages.items() if is_alarming(NOW - age * HOUR, NOW, WEEK)}
            assert bool(backlog.alarm) == bool(alarming)


def _assignment() -> Assignment:
    return Assignment(7, Fence(), Gating.__new__(Gating), {0: Position(0, 0)})


def test_what_waits_is_as_old_as_the_record_that_is_in_work() -> None:
    one = _assignment()
    assert one.oldest_unread({0: 3}) == {}, "nobody knows yet how old it is"
    one.took(0, 0, NOW)
    assert one.oldest_unread({0: 3}) == {0: NOW}
    one.done(0, 0, NOW)
    one.took(0, 1, NOW + DAY)
    assert one.oldest_unread({0: 3}) == {0: NOW + DAY}


def test_after_a_silence_a_record_is_not_as_old_as_the_silence() -> None:
    one = _assignment()
    one.took(0, 0, NOW - 5 * DAY)
    one.done(0, 0, NOW - 5 * DAY)
    assert one.oldest_unread({0: 1}) == {}
    assert one.oldest_unread({0: 2}) == {}, "it came just now"
    one.took(0, 1, NOW)
    assert one.oldest_unread({0: 2}) == {0: NOW}
