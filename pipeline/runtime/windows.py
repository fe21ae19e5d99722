"""Windows: touched minutes in, minutes and windows out, recomputed from the stored rows (docs/adr/0002)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from pipeline.model.window import Series, Sums, Window
from pipeline.runtime.topology import Touched
from pipeline.stages.window import total, window, windows_of

Minutes = Mapping[tuple[Series, int], Sums]
"""(series, start of the minute in ns) → what its rows add up to."""


class WindowStore(Protocol):
    """What recomputing needs of the store."""

    async def minute_sums(self, project: str, cohort_id: str, minutes: Sequence[int]) -> Minutes:
        """Add up the results rows of these minutes."""
        ...

    async def write_minutes(self, minutes: Minutes) -> None:
        """Write minutes as whole new versions."""
        ...

    async def load_minutes(self, project: str, cohort_id: str, start_ns: int, end_ns: int) -> Minutes:
        """Return stored minutes in [start, end)."""
        ...

    async def write_windows(self, windows: Sequence[Window]) -> None:
        """Write windows as whole new versions."""
        ...


async def recompute(store: WindowStore, touched: Iterable[Touched], lengths: Iterable[int]) -> list[Window]:
    """Recompute the touched minutes of each cohort, then every window of these lengths that holds one of them."""
    by_cohort: dict[tuple[str, str], list[int]] = {}
    for one in sorted(touched):
        by_cohort.setdefault((one.project, one.cohort.id), []).append(one.minute_ns)
    made: list[Window] = []
    for (project, cohort_id), minutes in by_cohort.items():
        await store.write_minutes(await store.minute_sums(project, cohort_id, minutes))
        for length in lengths:
            starts = sorted({start for minute in minutes for start in windows_of(minute, length)})
            stored = await store.load_minutes(project, cohort_id, starts[0], starts[-1] + length)
            made.extend(_windows(stored, starts, length))
    await store.write_windows(made)
    return made


def _windows(minutes: Minutes, starts: Sequence[int], length: int) -> Iterable[Window]:
    by_series: dict[Series, list[tuple[int, Sums]]] = {}
    for (series, minute), sums in minutes.items():
        by_series.setdefault(series, []).append((minute, sums))
    for series in sorted(by_series):
        for start in starts:
            inside = [sums for minute, sums in by_series[series] if start <= minute < start + length]
            if inside:
                yield window(series, start, length, total(inside))
