"""Grading: settings in, how the runs of each agent are graded out, and the contracts under which that is done."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from pipeline.config import references, rubrics
from pipeline.config.quality import QualitySettings, spec_of
from pipeline.config.records import sources_of
from pipeline.config.tracegrade import AgentSettings, TracegradeSettings
from pipeline.errors import ConfigurationError
from pipeline.judges import calibration
from pipeline.judges.calibration import Calibration
from pipeline.judges.contract import judge_contracts
from pipeline.judges.family import family
from pipeline.judges.settings import JudgeSettings
from pipeline.model.contract import Contract
from pipeline.model.quality import QualitySpec
from pipeline.model.result import Authority, Kind
from pipeline.model.risk import Risk
from pipeline.model.rubric import MeasuredBy, Rubric
from pipeline.scorers import Check, checks
from pipeline.scorers.prices import PriceTable
from pipeline.scorers.reading import Source
from pipeline.stages.grade import Grading, JudgedDimension, Pairing

SCORECARD_VERSION: Final = 1
"""Change it with anything that changes what composite and verdict are made of."""


class Graders(msgspec.Struct, frozen=True):
    """Everything that grades the runs of one agent: its grading, and the contracts behind the hashes in it."""

    grading: Grading
    judged: tuple[Contract, ...]
    """In the order of the rubric; behind them those of each pairing."""
    scorecard: Contract
    """Of runs that no pairing is for."""
    paired_scorecards: tuple[Contract, ...] = ()

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
    found = {one.hash: one for graders in known for one in (*graders.judged, graders.scorecard, *graders.paired_scorecards)}
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


def deciding_contracts(settings: TracegradeSettings) -> frozenset[str]:
    """Return the hashes of the judged contracts whose scores may decide: gates read windows of no others (spec section 6).

    Raises:
        ConfigurationError: a rubric, the calibration or a check cannot be had as written.
    """
    gradings = [graders.grading for graders in graders_of(settings).values()]
    return frozenset(one.contract for grading in gradings for one in grading.every_judged if one.authority in grading.deciding)


def by_choice(settings: TracegradeSettings) -> str:
    """Return what every page says where scores decide that nobody has compared with people's (spec section 6); empty where none does.

    Raises:
        ConfigurationError: a rubric, the calibration or a check cannot be had as written.
    """
    if settings.judge.uncalibrated != "decide" or settings.judge.base_url is None:
        return ""
    judged = [one for graders in graders_of(settings).values() for one in graders.grading.every_judged]
    names = dict.fromkeys(one.name for one in judged if one.authority == Authority.UNCALIBRATED)
    said = "Scores of a judge that nobody has compared with people decide here, by choice (judge.uncalibrated: decide)"
    return f"{said}: {', '.join(names)}." if names else ""


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
    spec = spec_of(policy, grading.checks, grading.every_judged, grading.rubric, grading.deciding)
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
    for _, panel in rubric.panels if rubric is not None and judge.base_url is not None else ():
        for model in panel.models:
            judge.of(model)  # a panel that nobody can ask is no panel
    try:
        in_code = checks(entry.checks, taken=asked, sources=sources, prices=prices)
    except ConfigurationError as error:
        raise ConfigurationError(f"agents.{name}.checks: {error}") from error
    alone = judge.model_copy(update={"pairing": {}})
    plain, *paired = (
        _judged_by(one, rubric, entry.risk, in_code, earned) for one in (alone, *map(judge.of, judge.pairing.values()))
    )
    grading = Grading(
        checks=in_code,
        rubric=rubric,
        judged=plain.judged,
        judge_configured=judge.base_url is not None,
        deciding=deciding(judge),
        sampling=entry.sampling,
        transcript_budget=judge.transcript_budget,
        deadline_ns=judge.deadline,
        contract=plain.scorecard.hash,
        prices=prices,
        task_kind=entry.checks.efficiency.task_kind,
        references=references.load(entry.references) if rubric is not None and rubric.reads_references else {},
        pairings={
            family_: Pairing(family(model), one.judged, one.scorecard.hash)
            for (family_, model), one in zip(judge.pairing.items(), paired, strict=True)
        },
    )
    by_judge = {one.hash: one for each in (plain, *paired) for one in each.contracts}
    return Graders(grading, tuple(by_judge.values()), plain.scorecard, tuple(one.scorecard for one in paired))


class _Judged(msgspec.Struct, frozen=True):
    """What one model judges, or a panel in its place."""

    contracts: tuple[Contract, ...]
    judged: tuple[JudgedDimension, ...]
    scorecard: Contract


def _judged_by(
    judge: JudgeSettings, rubric: Rubric | None, risk: Risk | None, in_code: tuple[Check, ...], earned: Calibration
) -> _Judged:
    contracts = judge_contracts(rubric, judge) if rubric is not None else ()
    judged = tuple(
        JudgedDimension(one.dimension, one.hash, earned.authority_of(one.hash, one.dimension).value) for one in contracts
    )
    return _Judged(contracts, judged, _scorecard_contract(rubric, risk, in_code, judged, deciding(judge)))


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
