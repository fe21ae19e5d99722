"""What the judge's calls came to, read from the rows of each: what is charged to a day, what is shown of it, what endpoints take."""

from typing import Any

import pytest
from builders import T0
from msgspec.structs import replace

from pipeline.judges.ability import Ability, Form, Limit
from pipeline.judges.votes import Vote, VoteKey, VotesInMemory, VoteState
from pipeline.model import ids
from pipeline.model.time import DAY, SECOND
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.judge_calls import charged, day_costs, endpoint, keep_endpoint
from sinks.clickhouse.votes import VoteBuffer

TODAY = T0 // DAY * DAY


def a_vote(project: str, number: int = 0, **fields: Any) -> Vote:
    key = VoteKey(project, f"run-{number}", "t", "c", fields.pop("dimension", "tone"), 0, 0)
    return replace(Vote(key, VoteState.REPLY, TODAY + SECOND, model="judge-1"), **fields)


def store(database: ClickHouse, *votes: Vote) -> None:
    buffer = VoteBuffer()
    for vote in votes:
        buffer.add(vote)
    buffer.flush(database)


ROWS: list[dict[str, Any]] = [
    {"cost_usd": 0.01, "input_tokens": 100, "output_tokens": 10},
    {"state": VoteState.INTENT, "reserved_usd": 0.5},
    {"reserved_usd": 0.25},
    {"cost_usd": 0.02, "lost": 2, "lost_usd": 0.125},
    {"state": VoteState.FAILED, "lost": 1, "lost_usd": 0.0625},
    {"state": VoteState.REFUSED},
    {"cost_usd": 100.0, "at_ns": TODAY - 1},
    {"cost_usd": 100.0, "at_ns": TODAY + DAY},
]
"""0.01 + 0.5 + 0.25 + (0.02 + 0.125) + 0.0625 + 0 today; and two calls of other days."""


async def test_a_day_is_charged_with_all_that_its_calls_cost_or_can_have_cost(database: ClickHouse) -> None:
    votes = [a_vote("day", number, **row) for number, row in enumerate(ROWS)]
    store(database, *votes, a_vote("another", cost_usd=7.0))
    assert charged(database, "day", TODAY, TODAY + DAY, 0, 1) == pytest.approx(0.9675)
    assert charged(database, "nobody", TODAY, TODAY + DAY, 0, 1) == 0.0
    memory = VotesInMemory()
    memory.rows = votes
    for partition in range(3):
        stored = charged(database, "day", TODAY, TODAY + DAY, partition, 3)
        assert stored == pytest.approx(await memory.charged("day", TODAY, TODAY + DAY, partition, 3)), "both logs say the same"


def test_each_call_is_charged_to_the_partition_of_its_run(database: ClickHouse) -> None:
    store(database, *(a_vote("split", number, cost_usd=1.0) for number in range(40)))
    expected = [sum(ids.bucket("split", f"run-{number}") % 4 == partition for number in range(40)) for partition in range(4)]
    assert [charged(database, "split", TODAY, TODAY + DAY, partition, 4) for partition in range(4)] == expected
    assert sum(expected) == 40


def test_the_row_that_says_what_became_of_a_call_is_charged_and_not_its_intent_too(database: ClickHouse) -> None:
    intent = a_vote("once", state=VoteState.INTENT, reserved_usd=0.5)
    store(database, intent)
    store(database, replace(intent, state=VoteState.REPLY, at_ns=intent.at_ns + SECOND, cost_usd=0.01, reserved_usd=0.0))
    assert charged(database, "once", TODAY, TODAY + DAY, 0, 1) == pytest.approx(0.01)


def test_what_is_shown_of_a_day_keeps_apart_what_is_known_and_what_is_not(database: ClickHouse) -> None:
    store(database, *(a_vote("shown", number, **row) for number, row in enumerate(ROWS)))
    store(database, a_vote("shown", 99, dimension="style", input_tokens=5))
    after, style, tone, before = day_costs(database, "shown", 100)
    assert (after.day > tone.day > before.day, after.cost_usd, before.cost_usd) == (True, 100.0, 100.0)
    assert (tone.project, tone.dimension, tone.model) == ("shown", "tone", "judge-1")
    assert (tone.calls, tone.answered, tone.failed, tone.lost, tone.unpriced) == (6, 3, 1, 3, 1)
    assert (tone.input_tokens, tone.output_tokens) == (100, 10)
    assert tone.cost_usd == pytest.approx(0.03)
    assert tone.unsure_usd == pytest.approx(0.5 + 0.25 + 0.125 + 0.0625)
    assert (style.dimension, style.cost_usd, style.output_tokens, style.unpriced) == ("style", None, None, 1)


def test_the_latest_of_what_was_found_out_about_an_endpoint_is_remembered(database: ClickHouse) -> None:
    assert endpoint(database, "http://a", "m") is None
    first = Ability(usage=True)
    last = Ability(Form.OBJECT_SCHEMA, Limit.NONE, seed=False, temperature=False, usage=False)
    keep_endpoint(database, "http://a", "m", last, T0 + SECOND)
    keep_endpoint(database, "http://a", "m", first, T0)
    keep_endpoint(database, "http://b", "m", first, T0)
    known = endpoint(database, "http://a", "m")
    assert known is not None
    assert (known.ability, known.learned_ns) == (last, T0 + SECOND)
