"""Stored grades: what is stored of a graded run, with what it was made under; read back to be explained or compared."""

from collections.abc import Mapping

import msgspec

from pipeline.model.contract import Contract
from pipeline.model.result import Judgment, Kind, Outcome, Result
from pipeline.model.rubric import Rubric
from pipeline.model.verdict import Subject
from pipeline.stages.composite import Interval, Score, interval, scores


class StoredGrades(msgspec.Struct, frozen=True):
    """One version of a run. ``contract`` is the scorecard's and ``rubric`` the one it names, None where they are not stored.

    Nothing of the configuration in force is in it: a later one changes no word of what is said of an earlier verdict.
    """

    subject: Subject
    results: tuple[Result, ...]
    judgments: tuple[Judgment, ...]
    agent_models: tuple[str, ...]
    graded_ns: int
    contract: Contract | None
    rubric: Rubric | None
    revision: str = ""
    """Commit of the code that graded it; empty where it was not kept."""

    @property
    def verdict(self) -> Result | None:
        """The verdict; None where none is stored."""
        return self._only(Kind.VERDICT)

    @property
    def composite(self) -> Result | None:
        """The composite; None where the judge was not to be asked."""
        return self._only(Kind.COMPOSITE)

    @property
    def known(self) -> tuple[Score, ...]:
        """What is known of each dimension of the rubric; empty where the run has no composite."""
        if self.rubric is None or self.composite is None:
            return ()
        return scores(self.rubric, self.results, self.deciding)

    @property
    def total(self) -> Interval | None:
        """What the composite can be; None where the run has none."""
        known = self.known
        return interval(self.rubric, known) if self.rubric is not None and known else None

    @property
    def deciding(self) -> frozenset[str]:
        """The authorities whose scores count, as the scorecard's contract has it."""
        judged = self._defined("judged")
        return frozenset(
            one.authority for one in self.results if one.kind is Kind.JUDGED and judged.get(one.dimension, [""])[-1] is True
        )

    @property
    def checks(self) -> tuple[Result, ...]:
        """What code measured and the rubric does not count, by name."""
        counted = {score.dimension.name for score in self.known}
        found = (one for one in self.results if one.kind is Kind.CODE and one.dimension not in counted)
        return tuple(sorted(found, key=lambda one: one.dimension))

    @property
    def gating(self) -> frozenset[str]:
        """The names of the checks whose fail is a fail of the run."""
        return frozenset(self._defined("gates"))

    @property
    def risk(self) -> str:
        """What a bad output costs, where the configuration said so."""
        return str(self.contract.check_definition.get("risk", "")) if self.contract is not None else ""

    def result(self, dimension: str) -> Result | None:
        """Return the result of a dimension of the rubric."""
        return next((one for one in self.results if one.dimension == dimension and one.kind in (Kind.JUDGED, Kind.CODE)), None)

    def judgment(self, result: Result) -> Judgment | None:
        """Return the judgment behind a result: that of the run's transcript, under the result's contract."""
        return next(
            (
                one
                for one in self.judgments
                if (one.dimension, one.contract, one.transcript_hash)
                == (result.dimension, result.contract, self.subject.transcript_hash)
            ),
            None,
        )

    @property
    def for_a_person(self) -> tuple[str, ...]:
        """Gated dimensions that the judge answered Unknown, where the verdict waits for them (spec section 2.4)."""
        verdict = self.verdict
        waits = verdict is not None and verdict.outcome in (Outcome.INSUFFICIENT_EVIDENCE, Outcome.GRADER_ERROR)
        return tuple(one.dimension.name for one in self.known if waits and one.is_unknown and one.dimension.gate is not None)

    def _only(self, kind: Kind) -> Result | None:
        found = (one for one in self.results if one.kind is kind and one.dimension == kind.value)
        return next(found, None)

    def _defined(self, part: str) -> Mapping[str, list[object]]:
        found: Mapping[str, list[object]] = self.contract.check_definition.get(part, {}) if self.contract is not None else {}
        return found
