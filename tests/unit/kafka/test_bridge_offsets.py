"""What a bridge commits: never past a record that is not done, whatever the order in which things happen (reliability I8, D1)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.kafka.bridge_offsets import Committable, Offsets, Taken

PLACES = [("otlp_spans", 0), ("otlp_spans", 1), ("others", 0)]


def took(offsets: Offsets, place: tuple[str, int], offset: int) -> Taken:
    record = Taken(offset, offset * 10)
    offsets.took(place, record)
    return record


def test_the_first_record_holds_all_after_it() -> None:
    offsets = Offsets()
    first, second, third = (took(offsets, PLACES[0], offset) for offset in range(3))
    second.finish("b")
    third.finish("c")
    assert offsets.committable() == {}
    assert offsets.oldest() == {PLACES[0]: 0}
    first.finish("a")
    assert offsets.committable() == {PLACES[0]: Committable(3, "c")}
    assert (offsets.committable(), offsets.oldest()) == ({}, {})


def test_a_single_record_in_the_middle_holds_what_is_after_it() -> None:
    """The case in which another consumer commits past what is under way (reliability D1)."""
    offsets = Offsets()
    records = [took(offsets, PLACES[0], offset) for offset in (10, 11, 12)]
    records[1].finish()
    records[2].finish()
    assert offsets.committable() == {}


def test_offsets_that_a_topic_does_not_have_are_no_gap() -> None:
    offsets = Offsets()
    for offset in (4, 9):
        took(offsets, PLACES[0], offset).finish()
    assert offsets.committable() == {PLACES[0]: Committable(10, "")}


actions = st.lists(
    st.tuples(
        st.sampled_from(["take", "take", "take", "finish", "finish", "commit", "revoke"]),
        st.sampled_from(PLACES[:2]),
        st.integers(0, 5),
    ),
    min_size=30,
    max_size=120,
)


@settings(max_examples=300, deadline=None)
@given(actions)
def test_whatever_is_acknowledged_fails_and_is_revoked_in_whatever_order_nothing_undone_is_committed(
    story: list[tuple[str, tuple[str, int], int]],
) -> None:
    """A model of brokers and members. Records that are never finished are those that failed. A partition that is taken away comes back,
    after another member has read and committed some more of it; what was under way of it ends at any time.
    """
    offsets = Offsets()
    committed = dict.fromkeys(PLACES, 0)
    durable: dict[tuple[str, int], set[int]] = {place: set() for place in PLACES}
    position = dict.fromkeys(PLACES, 0)
    under_way: list[tuple[tuple[str, int], Taken]] = []
    for what, place, chance in story:
        if what == "take":
            under_way.append((place, took(offsets, place, position[place])))
            position[place] += 1
        elif what == "finish" and under_way:
            whose, record = under_way.pop(chance % len(under_way))
            durable[whose].add(record.offset)
            record.finish()
        elif what == "commit":
            for whose, due in offsets.committable().items():
                assert due.offset > committed[whose], "a commit never goes back"
                committed[whose] = due.offset
        elif what == "revoke":
            offsets.forget([place])
            elsewhere = range(committed[place], committed[place] + chance)
            durable[place].update(elsewhere)
            committed[place] = position[place] = elsewhere.stop
        for each, upto in committed.items():
            assert set(range(upto)) <= durable[each], "committed past what is not done"


@given(st.permutations(range(8)))
def test_in_whatever_order_records_are_done_all_are_committed_in_the_end(order: list[int]) -> None:
    offsets = Offsets()
    records = [took(offsets, PLACES[0], offset) for offset in range(8)]
    told = []
    for index in order:
        records[index].finish(str(index))
        told += list(offsets.committable().values())
    assert told[-1] == Committable(8, "7")
    assert [one.offset for one in told] == sorted({one.offset for one in told})
