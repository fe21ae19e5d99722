"""What the owner of an agent writes and reads, as the runtimes use it: minutes, windows, gates, golden candidates (design section 3)."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from pipeline.model.evaluation import Evaluation
from pipeline.model.golden import GoldenCase, GoldenMember
from pipeline.model.run import Place
from pipeline.model.window import GateState, Notification, Series, Sums, Touched, Trip, Window
from pipeline.stages.gate_hard import Failure
from pipeline.stages.promote import FailingRun
from sinks.clickhouse import evaluations, failures, gates, golden, minutes, recovery
from sinks.clickhouse.line import Line


class AgentTables:
    """Reads and writes on the lines of a store; each method raises TemporaryError where the same call may work later."""

    def __init__(self, folds: Line, reads: Line) -> None:
        self._folds = folds
        self._reads = reads

    # Minutes and windows

    async def minute_sums(self, project: str, cohort_id: str, minutes_ns: Sequence[int]) -> dict[tuple[Series, int], Sums]:
        """Add up the results of these minutes."""
        return await self._reads.call(minutes.minute_sums, project, cohort_id, minutes_ns)

    async def derived(self) -> dict[int, int]:
        """Return up to when the rows were derived from, by partition of the agents."""
        return await self._reads.call(recovery.derived)

    async def write_derived(self, partitions: Collection[int], at_ns: int) -> None:
        """Write up to when the rows were derived from."""
        await self._folds.call(recovery.write_derived, partitions, at_ns)

    async def stale_minutes(self, since_ns: int = 0) -> list[tuple[str, Place]]:
        """Return (project, place) of the minutes that differ from their results."""
        return await self._reads.call(minutes.stale_minutes, since_ns)

    async def write_minutes(self, sums: Mapping[tuple[Series, int], Sums]) -> None:
        """Write minutes as whole new versions."""
        await self._folds.call(minutes.write_minutes, sums)

    async def load_minutes(self, project: str, cohort_id: str, start_ns: int, end_ns: int) -> dict[tuple[Series, int], Sums]:
        """Return the stored minutes that start in [start, end)."""
        return await self._reads.call(minutes.load_minutes, project, cohort_id, start_ns, end_ns)

    async def write_windows(self, windows: Sequence[Window], *, amended: bool = False) -> None:
        """Write windows as whole new versions."""
        await self._folds.call(minutes.write_windows, windows, amended=amended)

    async def write_evaluations(self, made: Sequence[Evaluation]) -> None:
        """Write evaluations as whole new versions."""
        await self._folds.call(evaluations.write_evaluations, made)

    async def load_windows(self, project: str, cohort_id: str, length_ns: int, start_ns: int, end_ns: int) -> list[Window]:
        """Return the published windows of this length that start in [start, end)."""
        return await self._reads.call(minutes.load_windows, project, cohort_id, length_ns, start_ns, end_ns)

    # Gates

    async def gate_states(self) -> list[GateState]:
        """Return where every gate stands."""
        return await self._reads.call(gates.gate_states)

    async def write_gate_states(self, states: Sequence[GateState]) -> None:
        """Write gate states as new versions."""
        await self._folds.call(gates.write_gate_states, states)

    async def trips(self) -> list[Trip]:
        """Return all transitions of all gates."""
        return await self._reads.call(gates.trips)

    async def write_trips(self, made: Sequence[Trip]) -> None:
        """Write transitions."""
        await self._folds.call(gates.write_trips, made)

    async def tripped_runs(self, run_ids: Sequence[str]) -> set[tuple[str, str, str, str]]:
        """Return (project, gate, cohort id, run id) of the trips that name these runs."""
        return await self._reads.call(gates.tripped_runs, run_ids)

    async def unread_windows(self, project: str, cohort_id: str, dimension: str, length_ns: int, after_ns: int) -> list[Window]:
        """Return the published windows of one dimension that start after a time."""
        return await self._reads.call(gates.unread_windows, project, cohort_id, dimension, length_ns, after_ns)

    async def failures(self, touched: Sequence[Touched]) -> list[Failure]:
        """Return the failing code results of these minutes."""
        return await self._reads.call(failures.failures, touched)

    async def untripped_failures(self, since_ns: int = 0) -> list[Failure]:
        """Return the failing code results whose run no trip names."""
        return await self._reads.call(failures.untripped_failures, since_ns)

    async def still_failing(self, project: str, run_ids: Sequence[str]) -> set[str]:
        """Return those of the runs that are live and fail a check now."""
        return await self._reads.call(gates.still_failing, project, run_ids)

    async def notifications(self) -> list[Notification]:
        """Return all notifications."""
        return await self._reads.call(gates.notifications)

    async def unconfirmed_notifications(self) -> list[Notification]:
        """Return the notifications that nobody is known to have heard."""
        return await self._reads.call(gates.unconfirmed_notifications)

    async def unnotified_trips(self, since_ns: int = 0) -> list[Trip]:
        """Return firings and clearings that have no notification stored at all."""
        return await self._reads.call(gates.unnotified_trips, since_ns)

    async def write_notifications(self, made: Sequence[Notification]) -> None:
        """Write notifications as new versions."""
        await self._folds.call(gates.write_notifications, made)

    # Golden candidates

    async def runs_touched(self, touched: Sequence[Touched]) -> list[FailingRun]:
        """Return the runs with results in these minutes that fail now or are members of a case."""
        return await self._reads.call(golden.runs_touched, touched)

    async def runs_by_id(self, project: str, run_ids: Sequence[str]) -> dict[str, FailingRun]:
        """Return the latest rows of these runs."""
        return await self._reads.call(golden.runs_by_id, project, run_ids)

    async def cases_of_runs(self, project: str, run_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return, by run id, the cases that have a members row for the run."""
        return await self._reads.call(golden.cases_of_runs, project, run_ids)

    async def golden(self, project: str, case_ids: Sequence[str]) -> dict[str, tuple[GoldenCase | None, list[GoldenMember]]]:
        """Return these cases and their members rows."""
        return await self._reads.call(golden.golden, project, case_ids)

    async def golden_cases(self, project: str) -> list[GoldenCase]:
        """Return all cases of a project."""
        return await self._reads.call(golden.golden_cases, project)

    async def write_members(self, members: Iterable[GoldenMember]) -> None:
        """Write members rows."""
        await self._folds.call(golden.write_members, members)

    async def write_cases(self, cases: Iterable[GoldenCase]) -> None:
        """Write cases as new versions."""
        await self._folds.call(golden.write_cases, cases)
