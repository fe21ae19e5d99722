"""Accounts: five times a second, from outside, that every run is in one class and that no score is there twice or came from nothing.

Received = judged + unsampled + unresolved + pending, for every project, cohort and minute (I3), and what results may say at any moment
(I5), read past the product; and what the product itself tells of it.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from typing import Final

from clickhouse_front import Front
from faults.aside import Aside

from pipeline.config.store import StoreSettings
from pipeline.model.result import Unresolved
from pipeline.model.run import RunClass
from sinks.clickhouse.board import accounting
from sinks.clickhouse.connection import Database, connect

EVERY_S: Final = 0.2
Class = tuple[str, str]
"""A class, and the reason of an unresolved run."""
CLASSES: Final = {
    *((RunClass.UNRESOLVED.value, reason.value) for reason in Unresolved),
    *((one.value, "") for one in RunClass if one is not RunClass.UNRESOLVED),
}
"""The closed list."""
_RUNS: Final = """
SELECT project, cohort_id, minute, class, class_reason, count(), uniqExact(run_id)
FROM {database}.runs FINAL WHERE state = 'live' GROUP BY project, cohort_id, minute, class, class_reason
"""
_LIVE: Final = "SELECT count(), uniqExact(project, trace_id) FROM {database}.runs FINAL WHERE state = 'live'"
_DOUBLED: Final = """
SELECT project, run_id, dimension, count() FROM {database}.results FINAL
WHERE weight > 0 AND series = 'live' GROUP BY project, run_id, dimension HAVING count() > 1
"""
_BASELESS: Final = """
SELECT project, run_id, dimension, outcome, value FROM {database}.results FINAL
WHERE (outcome IS NULL OR outcome NOT IN ('pass', 'fail')) AND value IS NOT NULL
   OR kind = 'judged' AND outcome IN ('pass', 'fail') AND value IS NULL
"""
_SCORES: Final = """
SELECT DISTINCT project, run_id, dimension, toString(value) FROM {database}.results FINAL WHERE kind = 'judged' AND value IS NOT NULL
"""
_JUDGMENTS: Final = "SELECT project, run_id, dimension, toString(score) FROM {database}.judgments WHERE score IS NOT NULL"


class Accounts(Aside):
    """The accounts of these projects, while its context lasts."""

    def __init__(self, front: Front, settings: StoreSettings, projects: Sequence[str]) -> None:
        super().__init__()
        self.looks = 0
        self.broken: list[str] = []
        """What did not hold at some moment."""
        self.seen: Counter[Class] = Counter()
        """In how many looks a class had somebody in it."""
        self.most: Counter[Class] = Counter()
        """The most runs that were in a class at once."""
        self.scores = 0
        """Judged scores that were there in the end."""
        self._front, self._settings, self._projects = front, settings, itertools.cycle(projects)

    def _look_on(self) -> None:
        with closing(connect(self._settings, {})) as database:
            while self._goes_on(EVERY_S):
                self._look(database)
            self._look(database)  # nothing is under way any more

    def _look(self, database: Database) -> None:
        self._classes()
        self._told(database, next(self._projects))
        self._results()
        self.looks += 1

    def now(self) -> Counter[Class]:
        """Return how many runs are in each class."""
        found: Counter[Class] = Counter()
        for _, _, _, name, reason, runs, _ in self._rows(_RUNS):
            found[name, reason] += int(runs)
        return found

    def _rows(self, sql: str) -> list[tuple[str, ...]]:
        return self._front.look(sql.format(database=self._settings.database))

    def _classes(self) -> None:
        """I3: for every project, cohort and minute all runs that there are have a class of the list, each once, and each trace has one run."""
        found: Counter[Class] = Counter()
        for project, cohort, minute, name, reason, runs, ids in self._rows(_RUNS):
            found[name, reason] += int(runs)
            if (name, reason) not in CLASSES:
                self.broken.append(f"{runs} runs of {project}, {cohort}, {minute} are in no class: {name!r} {reason!r}")
            if runs != ids:
                self.broken.append(f"a run of {project}, {cohort}, {minute} is there twice")
        self.seen.update(found.keys())
        self.most |= found
        for live, traces in self._rows(_LIVE):
            if live != traces:
                self.broken.append(f"{traces} traces have {live} runs")

    def _told(self, database: Database, project: str) -> None:
        """What the product tells adds up, too."""
        told = accounting(database, project)
        parts = told.judged + told.unsampled + sum(told.unresolved.values()) + told.pending
        if told.received != parts:
            self.broken.append(f"{project}: {told.received} received are not {parts}: {told}")

    def _results(self) -> None:
        """I5: a dimension of a run counts once, nothing undecided has a value, and every judged score is one that a judgment has.

        Results are read first: whatever they say was stored as a judgment before.
        """
        self.broken += [f"counts more than once: {row}" for row in self._rows(_DOUBLED)]
        self.broken += [f"a value without an outcome, or none with one: {row}" for row in self._rows(_BASELESS)]
        scores = set(self._rows(_SCORES))
        given = set(self._rows(_JUDGMENTS))
        self.broken += [f"a score that no judge gave: {row}" for row in scores - given]
        self.scores = len(scores)

    def tell(self) -> str:
        """Return what a reader wants to see."""
        lines = [
            f"{self.looks} looks, {EVERY_S} s apart; {len(self.broken)} times something did not hold; {self.scores} judged scores"
        ]
        lines += [
            f"  {' '.join(one).strip():36} in {self.seen[one]:4} looks, at most {self.most[one]:4} runs"
            for one in sorted(self.seen)
        ]
        return "\n".join(lines)
