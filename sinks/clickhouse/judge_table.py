"""The tables of the judge: each call before and after it is made, what calls have cost, and what endpoints take."""

from pipeline.judges.ability import Ability
from pipeline.judges.votes import Vote, VoteKey
from sinks.clickhouse import judge_calls, votes
from sinks.clickhouse.judge_calls import DayCost, KnownEndpoint
from sinks.clickhouse.line import Line


class JudgeTable:
    """The log of the judge's calls (:class:`pipeline.judges.votes.VoteLog`), and what is asked of all of them."""

    def __init__(self, reads: Line, writes: Line) -> None:
        self._reads = reads
        self._writes = writes
        self._waiting = votes.VoteBuffer()
        self._asked = votes.RecallBuffer()

    async def recall(self, key: VoteKey) -> Vote | None:
        """Return the latest row of a call, None where it was never begun."""
        asked = self._asked.add(key)
        await self._reads.call(self._asked.answer)
        return asked.found

    async def intent(self, vote: Vote) -> None:
        """Keep that a call is about to be made; it is stored when this returns."""
        self._waiting.add(vote)
        await self._writes.call(self._waiting.flush)

    async def reply(self, vote: Vote) -> None:
        """Keep what became of a call."""
        await self.intent(vote)

    async def charged(self, project: str, since_ns: int, until_ns: int, partition: int, partitions: int) -> float:
        """Return what is to be charged for calls of a time (:class:`pipeline.judges.purse.Charges`)."""
        return await self._reads.call(judge_calls.charged, project, since_ns, until_ns, partition, partitions)

    async def costs(self, project: str, limit: int) -> list[DayCost]:
        """Return what a project's calls came to by day and dimension, the latest day first."""
        return await self._reads.call(judge_calls.day_costs, project, limit)

    async def endpoint(self, base_url: str, model: str) -> KnownEndpoint | None:
        """Return what was found out about an endpoint; None where nobody asked it yet."""
        return await self._reads.call(judge_calls.endpoint, base_url, model)

    async def keep_endpoint(self, base_url: str, model: str, ability: Ability, at_ns: int) -> None:
        """Remember what an endpoint takes."""
        await self._writes.call(judge_calls.keep_endpoint, base_url, model, ability, at_ns)
