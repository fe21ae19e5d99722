"""Grade: one run into all that is said of it. A function of the run, its judgments and its feedback."""

from collections.abc import Mapping, Sequence

import msgspec

from pipeline.judges.family import family
from pipeline.judges.transcript import render
from pipeline.model.evidence import Evidence, Question
from pipeline.model.quality import QualitySpec
from pipeline.model.result import Feedback, JudgeRequest, Judgment, Kind, Outcome, Result, Unresolved, Verdict
from pipeline.model.rubric import Rubric
from pipeline.model.run import Run
from pipeline.model.version import RunVersion, Sampling, StoredRun, Transcript
from pipeline.scorers import Check
from pipeline.scorers.cost import cost_of
from pipeline.scorers.prices import PriceTable
from pipeline.scorers.recovery import recovery_runs
from pipeline.scorers.reference.task import folded
from pipeline.stages.accounting import run_class
from pipeline.stages.sample import SampleSettings, sample
from pipeline.stages.scorecard import scorecard
from pipeline.stages.trouble import trouble_of

NEEDS_A_PERSON = "needs_a_person"
"""The flag of a run whose verdict waits for a person: the judge answered Unknown on a gated dimension (spec section 2.4)."""
EXPIRED_PHASE = 1
"""Added to facts × 4 where a judgment was waited for in vain: equal facts, more known."""


class JudgedDimension(msgspec.Struct, frozen=True):
    """A dimension that the judge is asked about, under which contract, and what its word is worth."""

    name: str
    contract: str
    authority: str


class Pairing(msgspec.Struct, frozen=True):
    """How runs are judged where the agent's models are of some family: by a model of another one (scoring, section 6)."""

    family: str
    """Of the model that judges; empty where its id does not tell."""
    judged: tuple[JudgedDimension, ...]
    contract: str
    """Of the scorecard."""


class Grading(msgspec.Struct, frozen=True):
    """How the runs of one agent are graded: composed from the configuration."""

    checks: tuple[Check, ...]
    rubric: Rubric | None
    judged: tuple[JudgedDimension, ...]
    judge_configured: bool
    deciding: frozenset[str]
    """Authorities whose scores may decide."""
    sampling: SampleSettings
    transcript_budget: int
    deadline_ns: int
    contract: str
    """Of the scorecard: changes with the rubric and with any check or judge contract."""
    prices: PriceTable
    quality: QualitySpec = QualitySpec()
    """What a quality score of its windows weighs and reads; no score of a run depends on it."""
    task_kind: str = ""
    """Attribute that names a run's kind of task; empty where nobody configured one."""
    references: Mapping[str, str] = {}
    """The right answer by folded request; none where no judged dimension reads one."""
    opted_out: bool = False
    """Whether nothing of the project may be shown to a judge."""
    pairings: Mapping[str, Pairing] = {}
    """By the family of an agent's models."""

    @property
    def every_judged(self) -> tuple[JudgedDimension, ...]:
        """The judged dimensions under each contract that a run may be judged under, that of no pairing first."""
        paired = (one for pairing in self.pairings.values() for one in pairing.judged)
        return tuple(dict.fromkeys((*self.judged, *paired)))

    def paired_with(self, models: Sequence[str]) -> "Grading":
        """Return the grading of a run that used these models: by the first pairing for a family of theirs whose judge is of none of them."""
        agents = {family(model) for model in models} - {""}
        for name, pairing in self.pairings.items():
            if name in agents and pairing.family not in agents:
                return msgspec.structs.replace(self, judged=pairing.judged, contract=pairing.contract)
        return self


class Graded(msgspec.Struct, frozen=True):
    """A graded run and, while judgments are outstanding, the request for them."""

    version: RunVersion
    request: JudgeRequest | None = None


def grade(
    run: Run,
    facts: int,
    judgments: Sequence[Judgment],
    feedback: Sequence[Feedback],
    before: StoredRun | None,
    grading: Grading,
    now: int,
    wall: int,
    reads: Mapping[str, Evidence] | None = None,
) -> Graded:
    """Grade a run as of these facts. ``before`` is the run as it was last written: a request made then keeps its deadline.

    ``reads`` is what was read of record sources for it, by the id of the question.

    ``wall`` is when a request is made: a judge has its whole time also for a run that is graded late, out of a backlog.
    """
    grading = grading.paired_with(run.models)
    sampling = sample(run, feedback, grading.sampling)
    planned = grading.judged if sampling.sampled else ()
    transcript = render(run, grading.transcript_budget, _reference(run, grading)) if planned and run.completed else None
    asked = _asked(before, transcript)
    requested, deadline = asked or (wall, wall + grading.deadline_ns)
    known = {judgment.dimension: judgment for judgment in judgments if _is_about(judgment, run, transcript, grading)}
    judged = tuple(_judged(dimension, known, run, transcript, grading, expired=now >= deadline) for dimension in planned)
    verdict, results = _scored(run, judged, grading, reads or {}, sampled=sampling.sampled)
    label, reason = run_class(judged, sampled=sampling.sampled, completed=run.completed)
    pending = tuple((one.dimension, one.contract) for one in judged if one.outcome is None)
    expired = any(one.reason == Unresolved.EXPIRED for one in judged)
    version = RunVersion(
        run=_flagged(run, verdict),
        version=facts * 4 + (EXPIRED_PHASE if expired else 0),
        run_class=label,
        class_reason=reason,
        sampling=sampling,
        results=results,
        verdict=verdict,
        transcript=transcript,
        requested_ns=requested if asked or pending else 0,
        deadline_ns=deadline if asked or pending else 0,
        failing=_failing(verdict, feedback),
        cost=cost_of(run.billed, grading.prices),
        feedback=tuple(one.id for one in feedback),
        trouble=trouble_of(run),
    )
    return Graded(version=version, request=_request(version, pending, transcript, sampling) if pending and transcript else None)


def unanswered(run: Run, grading: Grading, reads: Mapping[str, Evidence]) -> tuple[Question, ...]:
    """Return what record sources must still be asked before the run can be graded, each question once."""
    asked = [question for check in grading.checks for question in check.asks(run)]
    return tuple(one for one in dict.fromkeys(asked) if one.id not in reads)


def _reference(run: Run, grading: Grading) -> str | None:
    """Return the reference answer to the run's request, which is another one only where more than case and space differ (spec section 9)."""
    return grading.references.get(folded(run.request)) if grading.references else None


def _scored(
    run: Run, judged: tuple[Result, ...], grading: Grading, reads: Mapping[str, Evidence], *, sampled: bool
) -> tuple[Verdict, tuple[Result, ...]]:
    """Return the verdict on a run and all results: what its checks say, what the judge said, and what follows from both."""
    code = tuple(result for check in grading.checks if (result := _checked(check, run, reads)) is not None)
    gating = frozenset(check.name for check in grading.checks if check.gates)
    card = scorecard((*code, *judged), grading.rubric, gating, grading.deciding, sampled=sampled, contract=grading.contract)
    recovered = recovery_runs(run, card.verdict, grading.contract)
    every = (*code, *judged, card.composite, card.verdict_result, recovered)
    return card.verdict, tuple(result for result in every if result is not None)


def _asked(before: StoredRun | None, transcript: Transcript | None) -> tuple[int, int] | None:
    """When the judge was asked about this very transcript, and until when it is waited for; None if it never was."""
    if before is not None and before.requested_ns and transcript is not None and before.transcript_hash == transcript.hash:
        return before.requested_ns, before.deadline_ns
    return None


def _checked(check: Check, run: Run, reads: Mapping[str, Evidence]) -> Result | None:
    """A check that breaks is a grader error of this one dimension; it costs the run nothing else (spec section 1)."""
    try:
        return check.score(run, reads)
    except Exception as error:  # noqa: BLE001 - whatever a check raises is a measurement that failed
        reason = f"grader_error: {type(error).__name__}: {error}"
        return Result(check.name, Kind.CODE, check.contract, Outcome.GRADER_ERROR, lower=0.0, upper=1.0, reason=reason)


def _is_about(judgment: Judgment, run: Run, transcript: Transcript | None, grading: Grading) -> bool:
    """A judgment counts while its transcript is the run's transcript and its contract the dimension's (design section 5)."""
    return (
        transcript is not None
        and judgment.run_id == run.run_id
        and judgment.transcript_hash == transcript.hash
        and any(judgment.dimension == one.name and judgment.contract == one.contract for one in grading.judged)
    )


def _judged(
    dimension: JudgedDimension,
    known: Mapping[str, Judgment],
    run: Run,
    transcript: Transcript | None,
    grading: Grading,
    *,
    expired: bool,
) -> Result:
    judgment = known.get(dimension.name)
    if judgment is not None:
        return _from_judgment(judgment, dimension, grading)
    if unasked := _unasked(run, transcript, grading):
        return _without(dimension, grading, Outcome.INSUFFICIENT_EVIDENCE, unasked)
    if expired:
        return _without(dimension, grading, Outcome.GRADER_ERROR, Unresolved.EXPIRED)
    return _without(dimension, grading, None, "")


def _unasked(run: Run, transcript: Transcript | None, grading: Grading) -> str:
    """Return why the judge is not asked; empty where it is."""
    reasons = (
        (not run.completed, Unresolved.INCOMPLETE),
        (grading.opted_out, Unresolved.OPTED_OUT),
        (not grading.judge_configured, Unresolved.NO_JUDGE),
        (transcript is not None and transcript.too_long, Unresolved.TOO_LONG),
    )
    return next((reason for holds, reason in reasons if holds), "")


def _from_judgment(judgment: Judgment, dimension: JudgedDimension, grading: Grading) -> Result:
    if judgment.score is None:
        return _without(dimension, grading, judgment.outcome, f"{judgment.unresolved}: {judgment.reason}".strip(": "))
    return Result(
        dimension=dimension.name,
        kind=Kind.JUDGED,
        contract=dimension.contract,
        outcome=judgment.outcome,
        value=judgment.score,
        lower=judgment.score,
        upper=judgment.score,
        reason=judgment.reason,
        evidence=judgment.quote,
        authority=dimension.authority,
    )


def _without(dimension: JudgedDimension, grading: Grading, outcome: Outcome | None, reason: str) -> Result:
    """A planned dimension without a score: its bounds are the scale's ends, its reason starts with a word of the closed list."""
    rubric = grading.rubric
    return Result(
        dimension=dimension.name,
        kind=Kind.JUDGED,
        contract=dimension.contract,
        outcome=outcome,
        lower=float(rubric.scale_low) if rubric else None,
        upper=float(rubric.scale_high) if rubric else None,
        reason=reason,
        authority=dimension.authority,
    )


def _request(
    version: RunVersion, pending: tuple[tuple[str, str], ...], transcript: Transcript, sampling: Sampling
) -> JudgeRequest:
    run = version.run
    return JudgeRequest(
        project=run.project,
        trace_id=run.trace_id,
        run_id=run.run_id,
        agent=run.place.cohort.agent,
        run_version=version.version,
        transcript_hash=transcript.hash,
        transcript=transcript.body,
        dimensions=pending,
        plan=sampling.plan,
        inclusion_probability=sampling.inclusion_probability,
        requested_ns=version.requested_ns,
        deadline_ns=version.deadline_ns,
        models=run.models,
    )


def _flagged(run: Run, verdict: Verdict) -> Run:
    if not verdict.for_a_person:
        return run
    return msgspec.structs.replace(run, flags=tuple(sorted({*run.flags, NEEDS_A_PERSON})))


def _failing(verdict: Verdict, feedback: Sequence[Feedback]) -> tuple[str, ...]:
    """Why the run should become a golden candidate: it failed, or somebody said so."""
    failed = (verdict.reason,) if verdict.outcome is Outcome.FAIL else ()
    disliked = ("thumbs_down",) if any(one.value < 0 for one in feedback) else ()
    return (*failed, *disliked)
