"""Promoter: runs of touched minutes in, golden candidates and their members out."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from pipeline.model.golden import GoldenCase, GoldenMember
from pipeline.model.window import Touched
from pipeline.stages.promote import FailingRun, case, members, representative
from pipeline.stages.promote import case_id as id_of_case


class GoldenStore(Protocol):
    """What promotion needs of the store."""

    async def runs_touched(self, touched: Sequence[Touched]) -> list[FailingRun]:
        """Return the latest rows of the runs with results in these minutes that fail now or are members of a case."""
        ...

    async def runs_by_id(self, project: str, run_ids: Sequence[str]) -> dict[str, FailingRun]:
        """Return the latest rows of these runs."""
        ...

    async def cases_of_runs(self, project: str, run_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return, by run id, the cases that have a members row for the run."""
        ...

    async def golden(self, project: str, case_ids: Sequence[str]) -> dict[str, tuple[GoldenCase | None, list[GoldenMember]]]:
        """Return these cases, as far as they are stored, and the members rows of each."""
        ...

    async def write_members(self, members: Sequence[GoldenMember]) -> None:
        """Write members rows."""
        ...

    async def write_cases(self, cases: Sequence[GoldenCase]) -> None:
        """Write cases as new versions."""
        ...


async def promote(store: GoldenStore, touched: Sequence[Touched]) -> int:
    """Bring the golden candidates up to date with the runs of these minutes. Returns how many cases changed."""
    by_project: dict[str, list[FailingRun]] = {}
    for run in await store.runs_touched(touched):
        by_project.setdefault(run.project, []).append(run)
    changed = 0
    for project, runs in by_project.items():
        known = await store.cases_of_runs(project, [run.run_id for run in runs])
        rows = [row for run in runs for row in members(run, known.get(run.run_id, ()))]
        await store.write_members(rows)
        changed += await _cases(store, project, sorted({row.case_id for row in rows}), {run.run_id: run for run in runs})
    return changed


async def _cases(store: GoldenStore, project: str, case_ids: Sequence[str], at_hand: Mapping[str, FailingRun]) -> int:
    stored = await store.golden(project, case_ids)
    wanted = {one for _, rows in stored.values() if (one := representative(rows)) is not None} - at_hand.keys()
    runs = {**at_hand, **(await store.runs_by_id(project, sorted(wanted)) if wanted else {})}
    made = [(before, case(rows, _asking(case_id, runs), before)) for case_id, (before, rows) in stored.items()]
    fresh = [now for before, now in made if now is not None and now is not before]
    await store.write_cases(fresh)
    return len(fresh)


def _asking(case_id: str, runs: Mapping[str, FailingRun]) -> dict[str, FailingRun]:
    """Only a run that asks what the case asks speaks for it: one that was merged, or asks something else by now, has no say in it."""
    return {run_id: run for run_id, run in runs.items() if id_of_case(run.project, run.agent, run.request) == case_id}
