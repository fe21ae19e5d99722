"""Grading: settings in, how the runs of each agent are graded out, and the contracts under which that is done."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from pipeline.config import rubrics
from pipeline.config.quality import QualitySettings, spec_of
from pipeline.config.records import sources_of
from pipeline.config.tracegrade import AgentSettings, TracegradeSettings
from pipeline.errors import ConfigurationError
from pipeline.judges import calibration
from pipeline.judges.calibration import Calibration
from pipeline.judges.contract import judge_contract
from pipeline.judges.settings import JudgeSettings
from pipeline.model.contract import Contract
from pipeline.model.quality import QualitySpec
from pipeline.model.result import Authority, Kind
from pipeline.model.risk import Risk
from pipeline.model.rubric import MeasuredBy, Rubric
from pipeline.scorers import Check, checks
from pipeline.scorers.prices import PriceTable
from pipeline.scorers.reading import Source
from pipeline.stages.grade import Grading, JudgedDimension

SCORECARD_VERSION: Final = 1
"""Change it with anything that changes what composite and verdict are made of."""


class Graders(msgspec.Struct, frozen=True):
    """Everything that grades the runs of one agent: its grading, and the contracts behind the hashes in it."""

    grading: Grading
    judged: tuple[Contract, ...]
    """In the order of the rubric."""
    scorecard: Contract

    @property
    def dimensions(self) -> frozenset[str]:
        """Every dimension that a result of such a run can have."""
        named = {check.name for check in self.grading.checks} | {one.name for one in self.grading.judged}
        return frozenset(named | {"verdict", "recovery_runs"} | ({"composite"} if self.grading.rubric is not None else set()))


def grading_of(settings: TracegradeSettings) -> Callable[[str, str], Grading]:
    """Return the function (project, agent) → how the agent's runs are graded. Every entry is composed now, and once.

    Raises:
        ConfigurationError: a rubric, the calibration or a check cannot be had as written.
    """
    graders = graders_of(settings)
    shown = {name: one.grading for name, one in graders.items()}
    hidden = {name: msgspec.structs.replace(one, opted_out=True) for name, one in shown.items()}
    opted_out = frozenset(settings.judge.opted_out)
    return lambda project, agent: (hidden if project in opted_out else shown)[settings.entry_of(agent)]


def contracts(settings: TracegradeSettings) -> tuple[Contract, ...]:
    """Return the contracts of all checks, judged dimensions and scorecards, each once: what the hashes in results stand for.

    Raises:
        ConfigurationError: a rubric, the calibration or a check cannot be had as written.
    """
    known = graders_of(settings).values()
    found = {one.hash: one for graders in known for one in (*graders.judged, graders.scorecard)}
    found |= {one.contract: one.terms for graders in known for one in graders.grading.checks if one.terms is not None}
    return tuple(found[key] for key in sorted(found))


def rubrics_in_force(settings: TracegradeSettings) -> tuple[Rubric, ...]:
    """Return the rubrics that runs are graded by, each once, with the bar and the gates of its risk: what rubric hashes stand for.

    Raises:
        ConfigurationError: a rubric, the calibration or a check cannot be had as written.
    """
    found = {one.hash: one for graders in graders_of(settings).values() if (one := graders.grading.rubric) is not None}
    return tuple(found[key] for key in sorted(found))


def quality_policies(settings: TracegradeSettings) -> dict[str, QualitySpec]:
    """Return what quality scores weigh and read, by agent entry.

    Raises:
        ConfigurationError: a rubric, the calibration or a check cannot be had as written.
    """
    return {name: graders.grading.quality for name, graders in graders_of(settings).items()}


def idle_contracts(settings: TracegradeSettings) -> frozenset[str]:
    """Return the hashes of the judged contracts whose scores are shown and decide nothing: no gate reads windows of theirs.

    Raises:
        ConfigurationError: a rubric, the calibration or a check cannot be had as written.
    """
    gradings = [graders.grading for graders in graders_of(settings).values()]
    return frozenset(one.contract for grading in gradings for one in grading.judged if one.authority not in grading.deciding)


def graders_of(settings: TracegradeSettings) -> dict[str, Graders]:
    """Return the graders of every entry, ``default`` always among them.

    Raises:
        ConfigurationError: a rubric, the calibration or a check cannot be had as written.
    """
    earned = calibration.load(settings.judge.calibration)
    sources = sources_of(settings.records)
    prices = PriceTable(settings.prices)
    return {
        name: _with_quality(_graders(name, entry, settings.judge, earned, sources, prices), entry.quality or settings.quality)
        for name, entry in settings.entries.items()
    }


def _with_quality(graders: Graders, policy: QualitySettings) -> Graders:
    grading = graders.grading
    spec = spec_of(policy, grading.checks, grading.judged, grading.rubric, grading.deciding)
    return msgspec.structs.replace(graders, grading=msgspec.structs.replace(grading, quality=spec))


def deciding(judge: JudgeSettings) -> frozenset[str]:
    """Return the authorities whose scores may decide (spec section 6)."""
    earned = {Authority.ASSISTED.value, Authority.ALONE.value}
    return frozenset(earned | {Authority.UNCALIBRATED.value} if judge.uncalibrated == "decide" else earned)


def judged_dimensions(rubric: Rubric | None) -> tuple[str, ...]:
    """Return the dimensions of a rubric that the judge is asked about, in the rubric's order."""
    return tuple(one.name for one in rubric.dimensions if one.measured_by is MeasuredBy.JUDGE) if rubric is not None else ()


def _graders(
    name: str,
    entry: AgentSettings,
    judge: JudgeSettings,
    earned: Calibration,
    sources: Mapping[str, Source],
    prices: PriceTable,
) -> Graders:
    rubric = rubrics.rubric_of(entry)
    asked = judged_dimensions(rubric)
    try:
        in_code = checks(entry.checks, taken=asked, sources=sources, prices=prices)
    except ConfigurationError as error:
        raise ConfigurationError(f"agents.{name}.checks: {error}") from error
    by_judge = tuple(judge_contract(rubric, one, judge) for one in asked) if rubric is not None else ()
    judged = tuple(
        JudgedDimension(one.dimension, one.hash, earned.authority_of(one.hash, one.dimension).value) for one in by_judge
    )
    scorecard = _scorecard_contract(rubric, entry.risk, in_code, judged, deciding(judge))
    grading = Grading(
        checks=in_code,
        rubric=rubric,
        judged=judged,
        judge_configured=judge.base_url is not None,
        deciding=deciding(judge),
        sampling=entry.sampling,
        transcript_budget=judge.transcript_budget,
        deadline_ns=judge.deadline,
        contract=scorecard.hash,
        prices=prices,
        task_kind=entry.checks.efficiency.task_kind,
    )
    return Graders(grading, by_judge, scorecard)


def _scorecard_contract(
    rubric: Rubric | None,
    risk: Risk | None,
    in_code: tuple[Check, ...],
    judged: tuple[JudgedDimension, ...],
    may_decide: frozenset[str],
) -> Contract:
    """Return the contract of composite and verdict: what they are made of, and which of it may decide.

    Only what can move a verdict is in it: checks that gate or that the rubric counts, and whether each judged dimension decides.
    """
    counted = {one.name for one in rubric.dimensions if one.measured_by is MeasuredBy.CODE} if rubric is not None else set()
    return Contract(
        kind=Kind.VERDICT,
        dimension="verdict",
        rubric_hash=rubric.hash if rubric is not None else "",
        check_definition={
            "version": SCORECARD_VERSION,
            "gates": {one.name: one.contract for one in in_code if one.gates},
            "counts": {one.name: one.contract for one in in_code if one.name in counted},
            "judged": {one.name: [one.contract, one.authority in may_decide] for one in judged},
            # Only where it is written, so that no other contract changes.
            **({"risk": risk.value} if risk is not None else {}),
        },
    )
