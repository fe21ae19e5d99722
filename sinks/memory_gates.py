"""The store in memory with everything that the embedded runtime needs: what runs add up to, and who is told.

It passes the same contract suite as the ClickHouse store (tests/contract). Its sums are ``pipeline.stages.window.fold`` of the rows.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from pipeline.model.evaluation import Evaluation
from pipeline.model.result import Kind, Outcome
from pipeline.model.run import Place
from pipeline.model.version import ResultRow
from pipeline.model.window import GateState, Notification, Series, Sums, Touched, Transition, Trip, Window
from pipeline.stages.gate_hard import Failure
from pipeline.stages.window import MinuteRow, fold
from sinks.memory_evaluations import MemoryEvaluations
from sinks.memory_golden import MemoryGoldenStore

SeriesKey = tuple[str, str, str, str]
"""(project, cohort id, dimension, contract): what the key of a series' tables starts with."""
TransitionKey = tuple[str, str, Transition]
"""(project, trip id, transition)."""
_MEASURED: Final = (Kind.CODE, Kind.JUDGED)


class MemoryGateStore(MemoryGoldenStore):
    """Everything that the embedded runtime needs of a store."""

    def __init__(self) -> None:
        super().__init__()
        self.minutes: dict[tuple[SeriesKey, int], tuple[Series, Sums]] = {}
        self.windows: dict[tuple[SeriesKey, int, int], tuple[Window, bool]] = {}
        """By series, length and start: the window, and whether it was amended after it was final."""
        self.states: dict[tuple[str, str, str], GateState] = {}
        self.tripped: dict[tuple[str, str, str, str, Transition, str], Trip] = {}
        self.told: dict[tuple[TransitionKey, str], Notification] = {}
        self.evaluations = MemoryEvaluations()
        self.derived_ns: dict[int, int] = {}
        """By partition of agents: up to when the rows were derived from."""

    # Minutes and windows

    async def minute_sums(self, project: str, cohort_id: str, minutes: Sequence[int]) -> dict[tuple[Series, int], Sums]:
        """Add up the results of these minutes."""
        summed = self._summed(
            row
            for row in self.results.values()
            if row.project == project and row.key.place.cohort.id == cohort_id and row.key.place.minute_ns in minutes
        )
        return {(series, at): sums for (_, at), (series, sums) in sorted(summed.items(), key=_by_minute)}

    def _summed(self, rows: Iterable[ResultRow]) -> dict[tuple[SeriesKey, int], tuple[Series, Sums]]:
        by_key: dict[tuple[Series, int], list[ResultRow]] = {}
        for row in rows:
            place = row.key.place
            named = Series(row.project, place.cohort, row.key.dimension, "", row.key.contract)
            by_key.setdefault((named, place.minute_ns), []).append(row)
        return {
            (_series_key(named), at): (replace(named, kind=self._kind_of(named)), fold(map(minute_row, some)))
            for (named, at), some in by_key.items()
        }

    def _kind_of(self, series: Series) -> str:
        """A retired row does not know its kind; other rows of its dimension do."""
        named = (series.project, series.dimension)
        return max(row.kind for row in self.results.values() if (row.project, row.key.dimension) == named)

    async def derived(self) -> dict[int, int]:
        """Return up to when the rows were derived from, by partition of the agents."""
        return dict(self.derived_ns)

    async def write_derived(self, partitions: Collection[int], at_ns: int) -> None:
        """Write up to when the rows were derived from; what was written later stays."""
        self.derived_ns |= {one: max(at_ns, self.derived_ns.get(one, 0)) for one in partitions}

    async def stale_minutes(self, since_ns: int = 0) -> list[tuple[str, Place]]:  # noqa: ARG002 - more than was asked for is no fault
        """Return (project, place) of all minutes that differ from their results; when rows were stored is not kept here."""
        grown: dict[tuple[str, Place, str, str], tuple[int, int]] = {}
        for row in self.results.values():
            named = (row.project, row.key.place, row.key.dimension, row.key.contract)
            rows, fingerprint = grown.get(named, (0, 0))
            grown[named] = (rows + 1, fingerprint + row.version)
        published = {
            (series.project, Place(series.cohort, at), series.dimension, series.contract): _grown(sums)
            for (_, at), (series, sums) in self.minutes.items()
        }
        stale = {named[:2] for named, now in grown.items() if published.get(named) != now}
        return sorted(stale, key=lambda one: (one[0], one[1].cohort.id, one[1].minute_ns))

    async def write_minutes(self, minutes: Mapping[tuple[Series, int], Sums]) -> None:
        """Write minutes as whole new versions; what was added up from more stays."""
        for (series, at), sums in minutes.items():
            known = self.minutes.get((_series_key(series), at))
            if known is None or sum(_grown(known[1])) <= sum(_grown(sums)):
                self.minutes[_series_key(series), at] = (series, sums)

    async def load_minutes(self, project: str, cohort_id: str, start_ns: int, end_ns: int) -> dict[tuple[Series, int], Sums]:
        """Return the stored minutes that start in [start, end)."""
        found = {
            key: held for key, held in self.minutes.items() if key[0][:2] == (project, cohort_id) and start_ns <= key[1] < end_ns
        }
        return {(series, at): sums for (_, at), (series, sums) in sorted(found.items(), key=_by_minute)}

    async def write_windows(self, windows: Sequence[Window], *, amended: bool = False) -> None:
        """Write windows as whole new versions; what was made of more stays."""
        for window in windows:
            key = (_series_key(window.series), window.length_ns, window.start_ns)
            if key not in self.windows or sum(_grown(self.windows[key][0].sums)) <= sum(_grown(window.sums)):
                self.windows[key] = (window, amended)

    async def write_evaluations(self, evaluations: Sequence[Evaluation]) -> None:
        """Write evaluations as whole new versions; what was made of more stays."""
        self.evaluations.write(evaluations)

    async def load_windows(self, project: str, cohort_id: str, length_ns: int, start_ns: int, end_ns: int) -> list[Window]:
        """Return the published windows of this length that start in [start, end), with the counts of their sums and no more."""
        found = [
            _published(window)
            for (series, length, start), (window, _) in self.windows.items()
            if (*series[:2], length) == (project, cohort_id, length_ns) and start_ns <= start < end_ns
        ]
        return sorted(found, key=lambda one: (one.start_ns, one.series.dimension, one.series.contract))

    async def unread_windows(self, project: str, cohort_id: str, dimension: str, length_ns: int, after_ns: int) -> list[Window]:
        """Return the published windows of one dimension that start after a time."""
        found = await self.load_windows(project, cohort_id, length_ns, after_ns + 1, 2**64)
        return [window for window in found if window.series.dimension == dimension]

    # Gates

    async def gate_states(self) -> list[GateState]:
        """Return where every gate stands."""
        return [self.states[key] for key in sorted(self.states)]

    async def write_gate_states(self, states: Sequence[GateState]) -> None:
        """Write gate states; the greater version stays."""
        for state in states:
            key = (state.project, state.gate, state.cohort.id)
            if key not in self.states or self.states[key].version <= state.version:
                self.states[key] = state

    async def trips(self) -> list[Trip]:
        """Return all transitions of all gates, in the order of the gates' clock."""
        return sorted(self.tripped.values(), key=_by_clock)

    async def write_trips(self, trips: Sequence[Trip]) -> None:
        """Write transitions; of equal ones the last written stays."""
        for trip in trips:
            key = (trip.project, trip.gate, trip.cohort.id, trip.trip_id, trip.transition, trip.run_id)
            self.tripped[key] = trip

    async def tripped_runs(self, run_ids: Sequence[str]) -> set[tuple[str, str, str, str]]:
        """Return (project, gate, cohort id, run id) of the trips that name these runs."""
        named = [trip for trip in self.tripped.values() if trip.run_id in run_ids]
        return {(trip.project, trip.gate, trip.cohort.id, trip.run_id) for trip in named}

    async def failures(self, touched: Sequence[Touched]) -> list[Failure]:
        """Return the failing code results of these minutes."""
        places = {(one.project, Place(one.cohort, one.minute_ns)) for one in touched}
        return self._failures(row for row in self.counting() if (row.project, row.key.place) in places)

    async def untripped_failures(self, since_ns: int = 0) -> list[Failure]:
        """Return the failing code results, in minutes since then, whose run no trip names."""
        named = {(trip.project, trip.run_id) for trip in self.tripped.values()}
        return self._failures(
            row for row in self.counting() if row.key.place.minute_ns >= since_ns and (row.project, row.key.run_id) not in named
        )

    def _failures(self, rows: Iterable[ResultRow]) -> list[Failure]:
        found = [
            Failure(
                minute_ns=row.key.place.minute_ns,
                run_id=row.key.run_id,
                dimension=row.key.dimension,
                contract=row.key.contract,
                project=row.project,
                cohort=row.key.place.cohort,
                reason=f"{row.key.dimension}: {row.result.reason}".rstrip(": "),
                received_ns=row.first_received_ns,
            )
            for row in rows
            if row.kind == Kind.CODE and row.result is not None and row.result.outcome is Outcome.FAIL
        ]
        return sorted(found, key=lambda one: (one.project, one.minute_ns, one.run_id, one.dimension, one.contract))

    async def still_failing(self, project: str, run_ids: Sequence[str]) -> set[str]:
        """Return those of the runs that are live and fail a check or a judged dimension now."""
        homes = {run.run.run_id: run.run.place for run in self.live_runs() if run.run.project == project}
        return {
            row.key.run_id
            for row in self.counting()
            if row.project == project
            and row.key.run_id in run_ids
            and homes.get(row.key.run_id) == row.key.place
            and row.kind in _MEASURED
            and row.result is not None
            and row.result.outcome is Outcome.FAIL
        }

    async def notifications(self) -> list[Notification]:
        """Return all notifications, by due time."""
        return sorted(self.told.values(), key=lambda one: (one.due_ns, one.project, one.trip_id, one.transition, one.destination))

    async def unconfirmed_notifications(self) -> list[Notification]:
        """Return what nobody is known to have heard."""
        return [one for one in await self.notifications() if not one.confirmed_ns]

    async def unnotified_trips(self, since_ns: int = 0) -> list[Trip]:
        """Return firings and clearings since a time that have no notification stored at all."""
        told = {transition for transition, _ in self.told}
        return [
            trip
            for trip in await self.trips()
            if trip.transition is not Transition.RUN
            and trip.at_ns >= since_ns
            and (trip.project, trip.trip_id, trip.transition) not in told
        ]

    async def write_notifications(self, notifications: Sequence[Notification]) -> None:
        """Write notifications: confirmed supersedes unconfirmed, and of either the one with more attempts."""
        for one in notifications:
            key = ((one.project, one.trip_id, one.transition), one.destination)
            if key not in self.told or _tried(self.told[key]) <= _tried(one):
                self.told[key] = one


def _series_key(series: Series) -> SeriesKey:
    return series.project, series.cohort.id, series.dimension, series.contract


def _by_minute(held: tuple[tuple[SeriesKey, int], object]) -> tuple[int, SeriesKey]:
    (key, at), _ = held
    return at, key


def _by_clock(trip: Trip) -> tuple[int, str, str, str, str, Transition, str]:
    return trip.at_ns, trip.project, trip.gate, trip.cohort.id, trip.trip_id, trip.transition, trip.run_id


def _grown(sums: Sums) -> tuple[int, int]:
    """What versions of minutes and windows go by: both only grow."""
    return sums.rows, sums.fingerprint


def _tried(notification: Notification) -> tuple[bool, int]:
    return bool(notification.confirmed_ns), notification.attempts


def minute_row(row: ResultRow) -> MinuteRow:
    """Return what a minute is made of, from a row as it stands."""
    result = row.result
    return MinuteRow(
        outcome=result.outcome if result else None,
        weight=row.weight,
        version=row.version,
        first_received_ns=row.first_received_ns,
        value=result.value if result else None,
        lower=result.lower if result else None,
        upper=result.upper if result else None,
        spent=row.spent,
    )


def _published(window: Window) -> Window:
    """Of a window's sums only the counts and the first receipt are published."""
    sums = window.sums
    kept = Sums(
        n=sums.n,
        decided=sums.decided,
        pending=sums.pending,
        first_received_ns=sums.first_received_ns,
        passed=sums.passed,
        grader_errors=sums.grader_errors,
    )
    return replace(window, sums=kept)
