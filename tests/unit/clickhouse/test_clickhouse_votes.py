"""Calls of the judge: kept before they are made and after, recalled by their key, stored together."""

from typing import Any

import pytest
from builders import T0
from msgspec.structs import replace
from unit.clickhouse.records import Recorder

from pipeline.errors import TemporaryError
from pipeline.judges.votes import Vote, VoteKey, VoteState
from pipeline.model.time import SECOND
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.votes import RecallBuffer, VoteBuffer, recall, votes_of_run


def an_intent(project: str, vote: int = 0) -> Vote:
    return Vote(VoteKey(project, "r1", "t1", "c1", "tone", vote, 0), VoteState.INTENT, T0, model="judge-1")


def answered(intent: Vote) -> Vote:
    return replace(
        intent,
        state=VoteState.REPLY,
        at_ns=intent.at_ns + SECOND,
        raw_reply='{"score": 4}',
        outcome="pass",
        score=4.0,
        reason="kind",
        served_model="judge-1-0613",
        fingerprint="fp",
        input_tokens=3000,
        output_tokens=300,
        cost_usd=0.003015,
    )


def store(database: ClickHouse, *votes: Vote) -> None:
    buffer = VoteBuffer()
    for vote in votes:
        buffer.add(vote)
    buffer.flush(database)


def recalled(database: ClickHouse, key: VoteKey) -> Vote | None:
    buffer = RecallBuffer()
    asked = buffer.add(key)
    buffer.answer(database)
    return asked.found


def test_a_call_that_was_never_begun_is_not_recalled(database: ClickHouse) -> None:
    assert recalled(database, an_intent("never").key) is None


def test_what_became_of_a_call_supersedes_its_intent_in_whatever_order_they_come(database: ClickHouse) -> None:
    for project, order in (("forward", (0, 1)), ("backward", (1, 0))):
        rows = an_intent(project), answered(an_intent(project))
        for index in order:
            store(database, rows[index])
        assert recalled(database, rows[0].key) == rows[1]


def test_a_call_that_failed_and_is_made_again_is_an_intent_again(database: ClickHouse) -> None:
    failed = replace(an_intent("again"), state=VoteState.FAILED, at_ns=T0 + SECOND, reason="503")
    again = replace(an_intent("again"), at_ns=T0 + 2 * SECOND)
    store(database, an_intent("again"))
    store(database, failed)
    store(database, again)
    assert recalled(database, again.key) == again


def test_tokens_and_cost_that_are_unknown_are_not_zero(database: ClickHouse) -> None:
    store(database, an_intent("unknown"))
    read = recalled(database, an_intent("unknown").key)
    assert read is not None
    assert (read.input_tokens, read.output_tokens, read.cost_usd, read.score) == (None, None, None, None)


def test_every_part_of_the_key_names_another_call(database: ClickHouse) -> None:
    first = an_intent("key")
    others = [
        replace(first, key=replace(first.key, **{name: value}))
        for name, value in {
            "run_id": "r2",
            "transcript_hash": "t2",
            "contract": "c2",
            "dimension": "style",
            "vote": 1,
            "attempt": 1,
        }.items()
    ]
    store(database, first, *others, an_intent("key-2"))
    assert all(recalled(database, vote.key) == vote for vote in (first, *others))
    assert recall(database, [vote.key for vote in (first, *others)]) == {vote.key: vote for vote in (first, *others)}
    assert [vote.key.run_id for vote in votes_of_run(database, "key", "r2")] == ["r2"]
    assert len(votes_of_run(database, "key", "r1")) == 6


def test_votes_of_many_calls_share_an_insert(database: ClickHouse) -> None:
    recorder = Recorder(database)
    buffer = VoteBuffer()
    for number in range(10):
        buffer.add(an_intent("shared", number))
    for _ in range(10):
        buffer.flush(recorder)
    assert recorder.inserts == [("judge_votes", 10)]


def test_a_vote_that_could_not_be_stored_is_not_taken_for_stored_by_the_next_caller(database: ClickHouse) -> None:
    class Full(Recorder):
        def insert(self, *_: object) -> None:
            raise TemporaryError("the disk is full")

    buffer = VoteBuffer()
    buffer.add(an_intent("full", 1))
    with pytest.raises(TemporaryError):
        buffer.flush(Full(database))
    buffer.add(an_intent("full", 2))
    buffer.flush(database)
    assert {vote.key.vote for vote in votes_of_run(database, "full", "r1")} == {1, 2}


def test_calls_that_are_asked_about_together_share_a_query(database: ClickHouse) -> None:
    first, second = (
        an_intent("together"),
        answered(replace(an_intent("together"), key=replace(an_intent("together").key, run_id="r2"))),
    )
    store(database, first, second)
    buffer, reader = RecallBuffer(), Recorder(database)
    waiting = [buffer.add(one.key) for one in (first, second, an_intent("elsewhere"))]
    for _ in waiting:
        buffer.answer(reader)
    assert [one.found for one in waiting] == [first, second, None]
    assert len(reader.queries) == 1


def test_a_call_whose_query_failed_is_not_taken_for_one_that_was_never_begun(database: ClickHouse) -> None:
    class Away(Recorder):
        def query(self, *_: Any) -> Any:
            raise TemporaryError("the store is away")

    vote = an_intent("away")
    store(database, vote)
    buffer = RecallBuffer()
    one, other = buffer.add(vote.key), buffer.add(vote.key)
    with pytest.raises(TemporaryError):
        buffer.answer(Away(database))
    buffer.answer(database)
    assert (one.found, other.found) == (vote, vote)
