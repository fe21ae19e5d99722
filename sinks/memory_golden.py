"""The store in memory with golden candidates: the failing runs they are made of, cases and members."""

from collections.abc import Iterable, Sequence

from pipeline.model.golden import GoldenCase, GoldenMember
from pipeline.model.run import Place
from pipeline.model.version import RunVersion
from pipeline.model.window import Touched
from pipeline.stages.promote import FailingRun
from sinks.memory import MemoryStore, RunRow


class MemoryGoldenStore(MemoryStore):
    """Runs, and the golden candidates that promotion makes of them."""

    def __init__(self) -> None:
        super().__init__()
        self.cases: dict[tuple[str, str], GoldenCase] = {}
        self.members: dict[tuple[str, str, str], GoldenMember] = {}

    async def runs_touched(self, touched: Sequence[Touched]) -> list[FailingRun]:
        """Return the runs with results in these minutes that fail now or are members of a case."""
        places = {(one.project, Place(one.cohort, one.minute_ns)) for one in touched}
        seen = {
            (row.project, row.trace_id, row.key.run_id) for row in self.results.values() if (row.project, row.key.place) in places
        }
        in_cases = {(project, run_id) for project, _, run_id in self.members}
        found = [_failing_run(key, self.runs[key]) for key in seen & self.runs.keys()]
        held = [run for run in found if run.failing or (run.project, run.run_id) in in_cases]
        return sorted(held, key=lambda run: (run.project, run.run_id))

    async def runs_by_id(self, project: str, run_ids: Sequence[str]) -> dict[str, FailingRun]:
        """Return the latest rows of these runs, failing or not."""
        return {key[2]: _failing_run(key, row) for key, row in self.runs.items() if key[0] == project and key[2] in run_ids}

    async def cases_of_runs(self, project: str, run_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return, by run id, the cases that have a members row for the run."""
        found: dict[str, list[str]] = {}
        for of_project, case_id, run_id in sorted(self.members):
            if of_project == project and run_id in run_ids:
                found.setdefault(run_id, []).append(case_id)
        return found

    async def golden(self, project: str, case_ids: Sequence[str]) -> dict[str, tuple[GoldenCase | None, list[GoldenMember]]]:
        """Return these cases, None where one is not stored, and their members rows."""
        rows = [self.members[key] for key in sorted(self.members) if key[0] == project]
        return {each: (self.cases.get((project, each)), [row for row in rows if row.case_id == each]) for each in case_ids}

    async def golden_cases(self, project: str) -> list[GoldenCase]:
        """Return all cases of a project."""
        return [self.cases[key] for key in sorted(self.cases) if key[0] == project]

    async def write_members(self, members: Iterable[GoldenMember]) -> None:
        """Write members rows; the greater version stays."""
        for one in members:
            key = (one.project, one.case_id, one.run_id)
            if key not in self.members or self.members[key].version <= one.version:
                self.members[key] = one

    async def write_cases(self, cases: Iterable[GoldenCase]) -> None:
        """Write cases; the greater version stays."""
        for one in cases:
            key = (one.project, one.id)
            if key not in self.cases or self.cases[key].version <= one.version:
                self.cases[key] = one


def _failing_run(key: tuple[str, str, str], stored: RunRow) -> FailingRun:
    project, trace_id, run_id = key
    if not isinstance(stored.row, RunVersion):
        return FailingRun(project, "", run_id, trace_id, stored.version, False, (), "", None, (), 0)
    run = stored.row.run
    return FailingRun(
        project=project,
        agent=run.place.cohort.agent,
        run_id=run_id,
        trace_id=trace_id,
        version=stored.version,
        failing=bool(stored.row.failing),
        reasons=stored.row.failing,
        request=run.request,
        answer=run.answer,
        tool_calls=run.tool_calls,
        minute_ns=run.place.minute_ns,
    )
