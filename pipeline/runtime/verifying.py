"""Verifying: stored runs, made again from what is stored of them."""

from collections.abc import Iterable

from pipeline.model.contract import Contract
from pipeline.model.version import StoredTrace
from pipeline.stages.turn import Assembly
from pipeline.stages.verify import Cause, Difference, Kept, Verification, verify
from sinks.clickhouse.run_detail import RunDetail
from sinks.clickhouse.store import Store


class Verifier:
    """Makes the scores of runs again. It writes nothing."""

    def __init__(self, store: Store, assembly: Assembly, current: Iterable[Contract]) -> None:
        """``current`` are the contracts that are in force."""
        self._store = store
        self._assembly = assembly
        self._current = {one.hash: one for one in current}

    async def one(self, project: str, prefix: str) -> Verification:
        """Verify the run whose id starts with ``prefix``.

        Raises:
            ConfigurationError: there is none, or there are several.
        """
        return await self._verified(project, await self._store.run_detail(project, prefix), await self._store.contracts())

    async def latest(self, project: str, limit: int) -> list[Verification]:
        """Verify the live runs that ended last."""
        stored = await self._store.contracts()
        lines = await self._store.scoreboard(project, limit)
        return [await self._verified(project, await self._store.run_detail(project, line.run_id), stored) for line in lines]

    async def _verified(self, project: str, run: RunDetail, stored: dict[str, Contract]) -> Verification:
        if not run.live:
            return Verification(run.line.run_id, 0, (), f"it was merged into run {run.merged_into or 'none'}, and has no scores")
        key = (project, run.line.trace_id)
        trace = (await self._store.load([key]))[key]
        kept = Kept(
            run_id=run.line.run_id,
            version=run.version,
            deadline_ns=run.deadline_ns,
            results=run.results,
            transcript_hash=run.transcript_hash,
            transcript=run.transcript,
            altered=await self._altered(trace),
            revision=run.revision,
        )
        return verify(trace, kept, self._assembly, stored, self._current)

    async def _altered(self, trace: StoredTrace) -> tuple[Difference, ...]:
        """Return what somebody said of the trace and is not what its hash says."""
        said = trace.judgments or trace.feedback
        found = await self._store.altered_facts(trace.project, trace.trace_id) if said else []
        return tuple(Difference(Cause.INPUT, *one) for one in found)
