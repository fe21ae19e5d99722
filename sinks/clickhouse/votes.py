"""Votes: each call of the judge as it is about to be made, and what became of it. What was answered is never bought again."""

from collections.abc import Collection
from queue import SimpleQueue
from typing import Final

import msgspec

from pipeline.judges.votes import Vote, VoteKey, VoteState
from pipeline.model import ids
from sinks.clickhouse.connection import Database, Row
from sinks.clickhouse.rows import count_or_none, insert, instant, ns

_OF_RUNS: Final = """
SELECT *
FROM judge_votes FINAL
WHERE project IN {projects:Array(String)} AND run_id IN {runs:Array(String)} AND transcript_hash IN {transcripts:Array(String)}
"""
_OF_RUN: Final = """
SELECT *
FROM judge_votes FINAL
WHERE project = {project:String} AND run_id = {run:String}
ORDER BY at, dimension, vote, attempt
"""


class VoteBuffer:
    """Votes that wait for the writer. Those of many calls share an insert: a judge makes two rows a call, and parts are not free.

    ``add`` may be called by any thread, ``flush`` by the writer's. Whoever adds, then flushes and sees no error, knows its vote stored.
    """

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Vote] = SimpleQueue()

    def add(self, vote: Vote) -> None:
        """Take a vote; it is not stored yet."""
        self._waiting.put(vote)

    def flush(self, database: Database) -> None:
        """Store what waits. Where that fails it waits on, for the flush of another caller must not take it for stored."""
        taken = [self._waiting.get_nowait() for _ in range(self._waiting.qsize())]
        try:
            insert(database, "judge_votes", [vote_row(vote) for vote in taken])
        except BaseException:
            for vote in taken:
                self._waiting.put(vote)
            raise


class Recall:
    """A call that is asked about, and its latest row once that is answered; None where it was never begun."""

    __slots__ = ("found", "key")

    def __init__(self, key: VoteKey) -> None:
        self.key = key
        self.found: Vote | None = None


class RecallBuffer:
    """Calls that are asked about. Those that wait for the reader together share a query, as votes share an insert.

    ``add`` may be called by any thread, ``answer`` by the reader's. Whoever adds, then has it answered and sees no error, knows.
    """

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Recall] = SimpleQueue()

    def add(self, key: VoteKey) -> Recall:
        """Take a call; nothing is known of it yet."""
        asked = Recall(key)
        self._waiting.put(asked)
        return asked

    def answer(self, database: Database) -> None:
        """Find what waits. Where that fails it waits on, for another caller must not take it for answered."""
        taken = [self._waiting.get_nowait() for _ in range(self._waiting.qsize())]
        try:
            found = recall(database, [one.key for one in taken])
        except BaseException:
            for one in taken:
                self._waiting.put(one)
            raise
        for one in taken:
            one.found = found.get(one.key)


def recall(database: Database, keys: Collection[VoteKey]) -> dict[VoteKey, Vote]:
    """Return the latest rows of calls, those that were begun."""
    if not keys:
        return {}
    rows = database.query(
        _OF_RUNS,
        {
            "projects": list({key.project for key in keys}),
            "runs": list({key.run_id for key in keys}),
            "transcripts": list({key.transcript_hash for key in keys}),
        },
    )
    found = {vote.key: vote for vote in map(vote_of, rows)}
    return {key: found[key] for key in keys if key in found}


def votes_of_run(database: Database, project: str, run_id: str) -> list[Vote]:
    """Return the calls that were made about a run, in the order of their latest rows."""
    return [vote_of(row) for row in database.query(_OF_RUN, {"project": project, "run": run_id})]


def vote_row(vote: Vote) -> Row:
    """Return a vote as it is stored; a later row of the same call supersedes."""
    return {
        **msgspec.structs.asdict(vote.key),
        "bucket": ids.bucket(vote.key.project, vote.key.run_id),
        "state": vote.state,
        "raw_reply": vote.raw_reply,
        "outcome": vote.outcome,
        "score": vote.score,
        "reason": vote.reason,
        "model": vote.model,
        "served_model": vote.served_model,
        "fingerprint": vote.fingerprint,
        "input_tokens": count_or_none(vote.input_tokens),
        "output_tokens": count_or_none(vote.output_tokens),
        "cost_usd": vote.cost_usd,
        "finish_reason": vote.finish_reason,
        "reserved_usd": vote.reserved_usd,
        "lost": vote.lost,
        "lost_usd": vote.lost_usd,
        "at": instant(vote.at_ns),
        "version": vote.version,
    }


def vote_of(row: Row) -> Vote:
    """Return the vote of a row."""
    return Vote(
        key=VoteKey(
            project=row["project"],
            run_id=row["run_id"],
            transcript_hash=row["transcript_hash"],
            contract=row["contract"],
            dimension=row["dimension"],
            vote=row["vote"],
            attempt=row["attempt"],
        ),
        state=VoteState(row["state"]),
        at_ns=ns(row["at"]),
        raw_reply=row["raw_reply"],
        outcome=row["outcome"],
        score=row["score"],
        reason=row["reason"],
        model=row["model"],
        served_model=row["served_model"],
        fingerprint=row["fingerprint"],
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        cost_usd=row["cost_usd"],
        finish_reason=row["finish_reason"],
        reserved_usd=row["reserved_usd"],
        lost=row["lost"],
        lost_usd=row["lost_usd"],
    )
