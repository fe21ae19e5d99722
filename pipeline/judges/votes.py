"""Votes: one row for each call of a judge's model, written before the call and again after it."""

from enum import StrEnum
from typing import Protocol

import msgspec

from pipeline.model import ids


class VoteState(StrEnum):
    """How far a call came."""

    INTENT = "intent"
    """It is about to be made, or was in flight when the process ended."""
    REPLY = "reply"
    """It was answered; the raw reply is kept."""
    REFUSED = "refused"
    """The endpoint will never answer it."""
    FAILED = "failed"
    """It was not answered this time; unless ``lost`` says so, asking again buys nothing twice."""

    @property
    def final(self) -> bool:
        """Whether the call must not be made again."""
        return self in (VoteState.REPLY, VoteState.REFUSED)


class VoteKey(msgspec.Struct, frozen=True):
    """Names one call: ``attempt`` 1 is the one retry after a reply without a verdict."""

    project: str
    run_id: str
    transcript_hash: str
    contract: str
    dimension: str
    vote: int
    attempt: int


class Vote(msgspec.Struct, frozen=True):
    """A row of ``judge_votes``. ``cost_usd`` is None where tokens or price are unknown, never 0."""

    key: VoteKey
    state: VoteState
    at_ns: int
    raw_reply: str = ""
    outcome: str = ""
    score: float | None = None
    reason: str = ""
    model: str = ""
    served_model: str = ""
    fingerprint: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    finish_reason: str = ""
    reserved_usd: float = 0.0
    """The most that the call can have cost, where nobody knows what it did."""
    lost: int = 0
    """How often it was made before without an answer that was kept: each time it may have been paid for nothing."""
    lost_usd: float = 0.0
    """The most that these can have cost."""

    @property
    def charged_usd(self) -> float:
        """What it is charged with: a cost that nobody knows is the most that it can be."""
        return (self.reserved_usd if self.cost_usd is None else self.cost_usd) + self.lost_usd

    @property
    def version(self) -> int:
        """Later rows win, and of two rows of one moment the one that is no intent."""
        return 2 * self.at_ns + (self.state is not VoteState.INTENT)


class VoteLog(Protocol):
    """Where votes are kept, durably: what stands in it is never bought again."""

    async def recall(self, key: VoteKey) -> Vote | None:
        """Return the row of that key, if there is one."""
        ...

    async def intent(self, vote: Vote) -> None:
        """Keep that a call is about to be made. The call waits for it."""
        ...

    async def reply(self, vote: Vote) -> None:
        """Keep what became of it, a failure too."""
        ...

    async def charged(self, project: str, since_ns: int, until_ns: int, partition: int, partitions: int) -> float:
        """Return what is to be charged for calls of a time (:class:`pipeline.judges.purse.Charges`)."""
        ...


class VotesInMemory:
    """A vote log that lives as long as the process: for trying a judge out, and for tests."""

    def __init__(self) -> None:
        self.rows: list[Vote] = []
        """All that was written, in order."""

    async def recall(self, key: VoteKey) -> Vote | None:
        """Return the last row of that key."""
        return next((vote for vote in reversed(self.rows) if vote.key == key), None)

    async def intent(self, vote: Vote) -> None:
        """Keep an intent."""
        self.rows.append(vote)

    async def reply(self, vote: Vote) -> None:
        """Keep a reply or a failure."""
        self.rows.append(vote)

    async def charged(self, project: str, since_ns: int, until_ns: int, partition: int, partitions: int) -> float:
        """Return what is to be charged for calls of a time."""
        last = {vote.key: vote for vote in self.rows}.values()
        return sum(
            vote.charged_usd
            for vote in last
            if vote.key.project == project
            and since_ns <= vote.at_ns < until_ns
            and ids.bucket(project, vote.key.run_id) % partitions == partition
        )
