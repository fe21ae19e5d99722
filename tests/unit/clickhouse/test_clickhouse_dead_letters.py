"""Dead letters in their table: whole, once, forgotten after a week; and what became of those that were sent back."""

import msgspec

from pipeline.model.dead_letter import LetterSummary, Outcome, Replay
from pipeline.model.topology import DeadLetter
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.dead_letters import bury, by_id, note_replays, replays, summaries

T0 = 1_790_000_000_000_000_000
LETTER = DeadLetter(
    "shop",
    "bridge: otlp_spans[0]@7",
    "garbage",
    b"\x00\xff\xfe",
    (("h", b"\xff"), ("h", b"")),
    b"\x80key",
    T0,
    size=3,
    masked=True,
)


def of(database: ClickHouse, project: str) -> list[LetterSummary]:
    return [one for one in summaries(database) if one.project == project]


def test_a_letter_comes_back_as_it_was_kept(database: ClickHouse) -> None:
    plain = DeadLetter("plain", "assemble", "it broke", b"", received_ns=T0)
    bury(database, [LETTER, plain])
    found = {letter.project: letter for letter in by_id(database, [LETTER.id, plain.id, "0" * 32])}
    assert found == {"shop": LETTER, "plain": plain}
    assert by_id(database, []) == []


def test_the_same_failure_again_is_the_same_letter(database: ClickHouse) -> None:
    for _ in range(2):
        bury(database, [msgspec.structs.replace(LETTER, project="twice")])
    (summary,) = of(database, "twice")
    assert (summary.size, summary.kept, summary.masked, summary.received_ns) == (3, 3, True, T0)


def test_the_latest_stands_first_and_what_was_cut_says_so(database: ClickHouse) -> None:
    bury(database, [DeadLetter("order", "o", f"{at}", b"ab", received_ns=T0 + at, size=9) for at in (2, 3, 1)])
    found = of(database, "order")
    assert [one.reason for one in found] == ["3", "2", "1"]
    assert {(one.size, one.kept) for one in found} == {(9, 2)}
    assert len(summaries(database, 1)) == 1


def test_what_became_of_a_letter_is_the_last_that_was_tried(database: ClickHouse) -> None:
    letter = msgspec.structs.replace(LETTER, project="replayed")
    bury(database, [letter])
    assert [(one.outcome, one.waiting) for one in of(database, "replayed")] == [("", True)]
    sent = Replay("replayed", letter.id, Outcome.SENT, "1 to somewhere", T0 + 2)
    note_replays(database, [sent, Replay("replayed", letter.id, Outcome.FAILED, "garbage", T0 + 1)])
    assert [(one.outcome, one.detail, one.waiting) for one in of(database, "replayed")] == [("sent", "1 to somewhere", False)]
    assert replays(database)[letter.id] == sent
    bury(database, [letter])  # that it came once more changes nothing
    assert [one.waiting for one in of(database, "replayed")] == [False]


def test_letters_are_kept_for_a_week_after_they_failed_last(database: ClickHouse) -> None:
    (row,) = database.query(
        "SELECT create_table_query AS made FROM system.tables WHERE database = currentDatabase() AND name = 'dead_letters'"
    )
    assert "TTL buried_at + toIntervalDay(7)" in row["made"]
    bury(database, [msgspec.structs.replace(LETTER, project="old", received_ns=1)])  # an old record that failed now
    database.command("OPTIMIZE TABLE dead_letters FINAL")
    assert len(of(database, "old")) == 1
