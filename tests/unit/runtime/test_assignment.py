"""Positions of an assignment: whatever the client hands over, every record is taken once, in order, and none is passed over."""

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.model.time import SECOND
from pipeline.runtime.faust.assignment import Assignment, Position, first_positions
from pipeline.runtime.fence import Fence
from pipeline.runtime.gating import Gating

GENERATION = 7
T0 = 1_790_000_000 * SECOND


def an_assignment(**next_offsets: int) -> Assignment:
    positions = {int(name[1:]): Position(offset, offset) for name, offset in next_offsets.items()}
    return Assignment(GENERATION, Fence(), Gating.__new__(Gating), positions)


def test_how_far_it_is_behind_is_what_is_there_and_not_done_with() -> None:
    assignment = an_assignment(p0=5, p1=7)
    assert assignment.behind({0: 5, 1: 7}) == 0
    assert assignment.behind({0: 9, 1: 8}) == 5
    assignment.took(0, 5)
    assert assignment.behind({0: 9, 1: 8}) == 5
    assignment.done(0, 5, T0)
    assert assignment.behind({0: 9, 1: 8}) == 4
    assert assignment.behind({0: 0, 1: 8}) == 1


class Delivered(NamedTuple):
    """What the client hands over of one partition: the next records of its fetch, which may be of a former assignment."""

    partition: int
    size: int
    what: str
    """``next``; ``skip``: a fetch was dropped; ``again``: from some way back; ``former``: of another generation."""


deliveries = st.lists(
    st.builds(Delivered, st.integers(0, 2), st.integers(1, 4), st.sampled_from(["next", "next", "skip", "again", "former"])),
    max_size=40,
)


class Client:
    """A client with a fetch position by partition, that skips, repeats, and delivers what is of another generation; it can be sought."""

    def __init__(self, starts: dict[int, int], end: int) -> None:
        self.assignment = Assignment(
            GENERATION, Fence(), Gating.__new__(Gating), {p: Position(at, at) for p, at in starts.items()}
        )
        self.fetch = dict(starts)
        self.end = end
        self.taken: dict[int, list[int]] = {partition: [] for partition in starts}

    def deliver(self, one: Delivered) -> None:
        """Hand over some records; what is missing is sought, as the consumer does."""
        if one.what == "skip":
            self.fetch[one.partition] += 1
        elif one.what == "again":
            self.fetch[one.partition] = max(self.fetch[one.partition] - one.size, 0)
        generation = GENERATION - 1 if one.what == "former" else GENERATION
        gap = False
        for offset in range(self.fetch[one.partition], min(self.fetch[one.partition] + one.size, self.end)):
            expected = self.assignment.expects(one.partition, offset, generation)
            if expected is None:
                gap = True
            elif expected:
                assert not gap or offset == self.assignment.positions[one.partition].next_offset
                self.assignment.took(one.partition, offset)
                self.assignment.done(one.partition, offset, T0 + offset)
                self.taken[one.partition].append(offset)
            self.fetch[one.partition] = offset + 1
        if gap:
            self.fetch[one.partition] = self.assignment.positions[one.partition].next_offset


@settings(deadline=None)
@given(st.fixed_dictionaries({0: st.integers(0, 5), 1: st.integers(0, 5), 2: st.integers(0, 5)}), deliveries, st.integers(0, 12))
def test_every_record_is_taken_once_in_order_and_none_is_passed_over(
    starts: dict[int, int], delivered: list[Delivered], end: int
) -> None:
    end = max(end, *starts.values())
    client = Client(starts, end)
    for one in delivered:
        client.deliver(one)
        for partition, start in starts.items():
            taken = client.taken[partition]
            assert taken == list(range(start, start + len(taken)))
            assert client.assignment.positions[partition].next_offset == start + len(taken)
    for partition, start in starts.items():
        for _ in range(2):  # what was skipped last shows with the next record, or is asked for again by whoever owns it next
            client.fetch[partition] = min(client.fetch[partition], client.assignment.positions[partition].next_offset)
            client.deliver(Delivered(partition, end, "next"))
        assert client.taken[partition] == list(range(start, end))


def test_what_is_not_owned_or_of_another_generation_is_dropped() -> None:
    assignment = an_assignment(p0=3)
    assert assignment.expects(0, 3, GENERATION) is True
    assert assignment.expects(1, 3, GENERATION) is False
    assert assignment.expects(0, 3, GENERATION - 1) is False
    assert assignment.expects(0, 3, GENERATION + 1) is False
    assert assignment.expects(0, 3, None) is False, "nobody knows whose it is"
    assert assignment.expects(0, 9, GENERATION - 1) is False, "a gap in a former assignment is none in this one"


def test_what_is_behind_was_taken_and_what_is_ahead_shows_a_gap() -> None:
    assignment = an_assignment(p0=3)
    assert assignment.expects(0, 2, GENERATION) is False
    assert assignment.expects(0, 4, GENERATION) is None
    assignment.took(0, 3)
    assert assignment.expects(0, 3, GENERATION) is False
    assert assignment.expects(0, 4, GENERATION) is True


# What time it is


def test_a_partition_is_not_at_the_wall_while_its_last_record_is_only_taken() -> None:
    assignment = an_assignment(p0=5)
    assignment.took(0, 5)
    assert assignment.partition_times(T0, {0: 6}) == {}
    assignment.done(0, 5, T0 - SECOND)
    assert assignment.partition_times(T0, {0: 6}) == {0: T0}


def test_what_was_deleted_unread_is_passed_over() -> None:
    assignment = an_assignment(p0=5)
    assignment.pass_over(0, 9)
    assert assignment.expects(0, 9, GENERATION) is True
    assert assignment.partition_times(T0, {0: 9}) == {0: T0}


def test_a_partition_that_was_read_to_its_end_is_at_the_wall() -> None:
    assignment = an_assignment(p0=5, p1=0)
    assert assignment.partition_times(T0, {0: 5, 1: 0}) == {0: T0, 1: T0}
    assert assignment.partition_times(T0, {0: 4, 1: 0}) == {0: T0, 1: T0}, "an end that was known before the last record was read"


def test_a_partition_that_lags_is_at_its_last_record() -> None:
    assignment = an_assignment(p0=5, p1=0)
    assignment.took(0, 5)
    assignment.done(0, 5, T0 - 90 * SECOND)
    assert assignment.partition_times(T0, {0: 7, 1: 0}) == {0: T0 - 90 * SECOND, 1: T0}


def test_a_partition_of_which_nothing_was_read_and_something_waits_has_no_time() -> None:
    assignment = an_assignment(p0=5)
    assert assignment.partition_times(T0, {0: 6}) == {}


def test_a_broker_whose_clock_is_ahead_does_not_bring_the_future() -> None:
    assignment = an_assignment(p0=5)
    assignment.took(0, 5)
    assignment.done(0, 5, T0 + SECOND)
    assert assignment.partition_times(T0, {0: 7}) == {0: T0}


@given(st.dictionaries(st.integers(0, 3), st.tuples(st.integers(0, 5), st.integers(0, 20), st.integers(0, 9)), max_size=4))
def test_no_partition_is_ever_ahead_of_the_wall_nor_of_what_it_may_still_hold(state: dict[int, tuple[int, int, int]]) -> None:
    wall = 10
    assignment = an_assignment()
    ends = {}
    for partition, (offset, time_ns, end) in state.items():
        assignment.positions[partition] = Position(offset, offset, time_ns)
        ends[partition] = end
    times = assignment.partition_times(wall, ends)
    assert times.keys() <= state.keys()
    for partition, now in times.items():
        offset, time_ns, end = state[partition]
        assert now <= wall
        assert offset >= end or now <= time_ns


# Where to begin


def test_reading_begins_at_what_is_committed_else_at_the_beginning() -> None:
    committed = {0: 7, 1: None, 2: -1, 3: 0, 4: 2}
    earliest = {0: 0, 1: 4, 2: 0, 3: 0, 4: 5}
    begun = {partition: position.next_offset for partition, position in first_positions(committed, earliest).items()}
    assert begun == {0: 7, 1: 4, 2: 0, 3: 0, 4: 5}


@given(st.dictionaries(st.integers(0, 5), st.tuples(st.none() | st.integers(-1, 20), st.integers(0, 20))))
def test_no_record_that_is_there_and_uncommitted_is_before_the_beginning(state: dict[int, tuple[int | None, int]]) -> None:
    committed = {partition: offset for partition, (offset, _) in state.items()}
    earliest = {partition: offset for partition, (_, offset) in state.items()}
    for partition, position in first_positions(committed, earliest).items():
        offset = committed[partition]
        first = max(earliest[partition], -1 if offset is None else offset)
        assert position == Position(first, first)
    assert first_positions(committed, earliest).keys() == state.keys()
