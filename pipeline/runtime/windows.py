"""Windows: touched minutes in, minutes and windows out, recomputed from the stored rows (docs/adr/0002)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Protocol

import msgspec
from msgspec.structs import replace

from pipeline.model.evaluation import Evaluation
from pipeline.model.quality import QualitySpec
from pipeline.model.window import Series, Sums, Touched, Window
from pipeline.stages.evaluate import Parts, evaluate
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

    async def write_windows(self, windows: Sequence[Window], *, amended: bool = False) -> None:
        """Write windows as whole new versions. ``amended``: they were final before, and no gate reads them again."""
        ...

    async def write_evaluations(self, evaluations: Sequence[Evaluation]) -> None:
        """Write evaluations as whole new versions."""
        ...


def plain(_project: str, _agent: str) -> QualitySpec:
    """Give every agent the quality score as it is where nobody wrote anything."""
    return QualitySpec()


class Evaluating(msgspec.Struct, frozen=True):
    """How windows are evaluated: the policy of each (project, agent), and the commit of the code."""

    spec_of: Callable[[str, str], QualitySpec] = plain
    revision: str = ""


async def recompute(
    store: WindowStore,
    touched: Iterable[Touched],
    lengths: Sequence[int],
    is_final: Callable[[Window], bool],
    how: Evaluating = Evaluating(),  # noqa: B008 - a constant
) -> Minutes:
    """Recompute the touched minutes of each cohort, and write every window of these lengths that holds one that changed, and its evaluation.

    Returns the minutes that changed, not yet written: a stored minute says that all that follows from it is done.
    """
    recomputed: dict[tuple[Series, int], Sums] = {}
    by_cohort: dict[tuple[str, str], list[int]] = {}
    for one in sorted(touched):
        by_cohort.setdefault((one.project, one.cohort.id), []).append(one.minute_ns)
    for (project, cohort_id), minutes in by_cohort.items():
        start, end = minutes[0] - max(lengths), minutes[-1] + max(lengths)
        stored, summed = _named_alike(
            await store.load_minutes(project, cohort_id, start, end), await store.minute_sums(project, cohort_id, minutes)
        )
        # By content and not by version alone: a row that is retired at an equal version leaves the count and the versions as they were.
        changed = {key: sums for key, sums in summed.items() if stored.get(key) != sums and not _expires(stored.get(key), sums)}
        now = {**stored, **changed}
        made = [window for length in lengths for window in _windows(now, changed, length)]
        for amended in (False, True):
            windows = [window for window in made if is_final(window) is amended]
            if windows:
                await store.write_windows(windows, amended=amended)
        evaluated = [one for length in lengths for one in _evaluations(now, changed, length, how)]
        if evaluated:
            await store.write_evaluations(evaluated)
        recomputed |= changed
    return recomputed


def _expires(before: Sums | None, now: Sums) -> bool:
    """Whether rows of a minute are gone. Nothing deletes a row but its age, so what the minute said while it was whole stays said."""
    return before is not None and now.rows < before.rows


def _named_alike(*some: Minutes) -> list[Minutes]:
    """A minute of nothing but retired rows may not know the kind of its series; other minutes do, and it is one series."""
    kinds: dict[Series, str] = {}
    for series, _ in chain(*some):
        bare = replace(series, kind="")
        kinds[bare] = max(kinds.get(bare, ""), series.kind)
    return [
        {(replace(series, kind=kinds[replace(series, kind="")]), minute): sums for (series, minute), sums in minutes.items()}
        for minutes in some
    ]


def _windows(minutes: Minutes, changed: Minutes, length: int) -> Iterable[Window]:
    """Make the windows of the changed series that hold a changed minute."""
    by_series: dict[Series, list[tuple[int, Sums]]] = {}
    for (series, minute), sums in minutes.items():
        by_series.setdefault(series, []).append((minute, sums))
    starts: dict[Series, set[int]] = {}
    for series, minute in changed:
        starts.setdefault(series, set()).update(windows_of(minute, length))
    for series in sorted(starts):
        for start in sorted(starts[series]):
            inside = [sums for minute, sums in by_series[series] if start <= minute < start + length]
            yield window(series, start, length, total(inside))


def _evaluations(minutes: Minutes, changed: Minutes, length: int, how: Evaluating) -> Iterator[Evaluation]:
    """Evaluate the windows of one cohort that hold a changed minute."""
    starts = {start for _, minute in changed for start in windows_of(minute, length)}
    if not starts:
        return
    named = next(series for series, _ in changed)
    spec = how.spec_of(named.project, named.cohort.agent)
    for start in sorted(starts):
        yield evaluate(named.project, named.cohort, start, length, parts_of(minutes, start, length), spec, how.revision)


def parts_of(minutes: Minutes, start: int, length: int) -> Parts:
    """Return what the minutes of a window hold, by series."""
    parts: dict[Series, list[Sums]] = {}
    for (series, minute), sums in minutes.items():
        if start <= minute < start + length:
            parts.setdefault(series, []).append(sums)
    return parts
