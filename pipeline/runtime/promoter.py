"""Promoter: runs of touched minutes in, golden candidates and their members out."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from pipeline.model.golden import GoldenCase, GoldenMember
from pipeline.model.window import Touched
from pipeline.runtime.gates import Owns, everything
from pipeline.stages.promote import FailingRun, case, members, representative
from pipeline.stages.promote import case_id as id_of_case

Stored = Mapping[str, tuple[GoldenCase | None, list[GoldenMember]]]
"""By id of a case: the case, None where it is not stored, and its members rows."""


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


async def promote(store: GoldenStore, touched: Sequence[Touched], owns: Owns = everything) -> int:
    """Bring the golden candidates of the owned agents up to date with the runs of these minutes. Returns how many cases changed.

    A run that turns out to be of another agent is in minutes of both: the owner of each takes it out of its cases or into them.
    """
    by_project: dict[str, list[FailingRun]] = {}
    for run in await store.runs_touched(touched):
        by_project.setdefault(run.project, []).append(run)
    changed = 0
    for project, runs in by_project.items():
        known = await store.cases_of_runs(project, [run.run_id for run in runs])
        rows = [row for run in runs for row in members(run, known.get(run.run_id, ()))]
        stored = await store.golden(project, sorted({row.case_id for row in rows}))
        owned = _owned(rows, _agents(stored, runs), owns)
        await store.write_members(owned)
        changed += await _cases(store, project, _with(stored, owned), {run.run_id: run for run in runs}, owns)
    return changed


def _agents(stored: Stored, runs: Sequence[FailingRun]) -> dict[str, str]:
    """Return, by id of a case, the agent that is asked it, as far as anything says so."""
    asked = {id_of_case(run.project, run.agent, run.request): run.agent for run in runs}
    return asked | {case_id: case.agent for case_id, (case, _) in stored.items() if case is not None}


def _owned(rows: Sequence[GoldenMember], agents: Mapping[str, str], owns: Owns) -> list[GoldenMember]:
    """Leave the members of others to them.

    Where a process died before it wrote the case itself, nothing says whose it is, and whoever comes by writes the same row.
    """
    return [row for row in rows if row.case_id not in agents or owns(row.project, agents[row.case_id])]


def _with(stored: Stored, rows: Sequence[GoldenMember]) -> Stored:
    """Return the cases that these rows are of, with the rows as they are now."""
    held = {case_id: {row.run_id: row for row in stored[case_id][1]} for case_id in sorted({row.case_id for row in rows})}
    for row in rows:
        before = held[row.case_id].get(row.run_id)
        if before is None or before.version <= row.version:
            held[row.case_id][row.run_id] = row
    return {case_id: (stored[case_id][0], list(some.values())) for case_id, some in held.items()}


async def _cases(store: GoldenStore, project: str, stored: Stored, at_hand: Mapping[str, FailingRun], owns: Owns) -> int:
    wanted = {one for _, rows in stored.values() if (one := representative(rows)) is not None} - at_hand.keys()
    runs = {**at_hand, **(await store.runs_by_id(project, sorted(wanted)) if wanted else {})}
    made = [(before, case(rows, _asking(case_id, runs), before)) for case_id, (before, rows) in stored.items()]
    fresh = [now for before, now in made if now is not None and now is not before and owns(project, now.agent)]
    await store.write_cases(fresh)
    return len(fresh)


def _asking(case_id: str, runs: Mapping[str, FailingRun]) -> dict[str, FailingRun]:
    """Only a run that asks what the case asks speaks for it: one that was merged, or asks something else by now, has no say in it."""
    return {run_id: run for run_id, run in runs.items() if id_of_case(run.project, run.agent, run.request) == case_id}
