"""Turn: what the owner of a trace does when a fact came or its time has come.

(state, now) in; the version to write, the requests to send and the next wake-up out. :func:`settle` is called once that is stored.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from pipeline.model.evidence import Question
from pipeline.model.quality import QualitySpec
from pipeline.model.result import Feedback, JudgeRequest
from pipeline.model.run import CloseReason, Place, Run, RunClass
from pipeline.model.step import Step
from pipeline.model.time import MINUTE
from pipeline.model.version import ResultKey, Retired, Retraction, RunVersion, StoredRun, TraceVersion
from pipeline.model.window import Touched
from pipeline.stages.assemble import Read, TraceState
from pipeline.stages.close import AssembleSettings, Due, due, due_without_run
from pipeline.stages.flags import flags_of
from pipeline.stages.grade import Graded, Grading, grade, unanswered
from pipeline.stages.group import Group
from pipeline.stages.looks import NEVER
from pipeline.stages.place import end_of, first_received, place_of, start_of
from pipeline.stages.retention import kept_forever
from pipeline.stages.trajectory import as_run

ASK_AGAIN: Final = 2 * MINUTE
"""When an unanswered question is asked again: later than any source is waited for, so whoever was to ask it is gone."""


class Assembly(msgspec.Struct, frozen=True):
    """What a turn needs besides the state: how to read spans, how long to wait, how each agent's runs are graded."""

    read: Read
    settings: AssembleSettings
    grading_of: Callable[[str, str], Grading]
    """(project, agent) → how its runs are graded."""
    retention_of: Callable[[str], int] = kept_forever
    """Project → how long its facts are kept, in ns."""
    revision: str = ""
    """Commit of the code; empty where it is not known."""

    def gating_of(self, project: str, agent: str) -> frozenset[str]:
        """Return the checks that fail the agent's runs by themselves."""
        return frozenset(check.name for check in self.grading_of(project, agent).checks if check.gates)

    def quality_of(self, project: str, agent: str) -> QualitySpec:
        """Return what a quality score of the agent's windows weighs and reads."""
        return self.grading_of(project, agent).quality


class Turn(msgspec.Struct, frozen=True):
    """What to do: write ``version``, then send ``requests``, then wake at ``wake_at`` (None: nothing is awaited, let the state go).

    ``questions`` are for record sources: until they are answered the runs that they are about are not graded (docs/adr/0008).
    """

    version: TraceVersion | None
    requests: tuple[JudgeRequest, ...]
    wake_at: int | None
    questions: tuple[Question, ...] = ()


def turn(state: TraceState, now: int, wall: int, assembly: Assembly, *, patient: bool = True) -> Turn:
    """Grade every run of the trace that is due by ``now``, in its partition's time, and not yet written as of these facts.

    Who is not ``patient`` has runs graded without what was not read for them: there it was not read, and nothing is asked.
    """
    rest = state.rest_until(assembly.read, assembly.settings)
    if now < rest:
        return Turn(version=None, requests=(), wake_at=rest)
    groups = state.groups(assembly.read)
    if not groups:
        return _without_runs(state, now, assembly)
    last = state.last_received_ns
    dues = {one.head.span_id: due(one, assembly.settings, _log_received(state, one.steps), last) for one in groups}
    ready = [one for one in groups if dues[one.head.span_id].at_ns <= now]
    made = [_graded(state, one, now, wall, assembly, patient=patient) for one in ready]
    graded = [one for one in made if isinstance(one, Graded)]
    questions = tuple(question for one in made if not isinstance(one, Graded) for question in one)
    fresh = [one for one in graded if state.is_open or _is_news(state, one.version)]
    waiting = [one for one in dues.values() if one.at_ns > now]
    deadlines = [one.version.deadline_ns for one in graded if one.version.run_class is RunClass.PENDING]
    deadlines += [now + ASK_AGAIN] if questions else []
    state.looks.looked(now, min([_lasting(waiting), *deadlines]))
    closes = None if waiting or questions else max(dues.values(), key=lambda one: one.at_ns)
    version = _version(state, fresh, groups, closes, now, assembly)
    # Asked again whenever the trace is looked at: after a restart the first request may be lost, and nobody judges twice what is stored.
    requests = tuple(one.request for one in graded if one.request is not None)
    wake_at = min([*(one.at_ns for one in waiting), *deadlines], default=None)
    return Turn(version=version, requests=requests, wake_at=wake_at, questions=questions)


def _without_runs(state: TraceState, now: int, assembly: Assembly) -> Turn:
    steps = tuple(state.steps(assembly.read).values())
    closes = due_without_run(steps, assembly.settings, _log_received(state, steps)) if steps else None
    if closes is None:  # log records, feedback or a judgment of a trace whose spans never came
        return Turn(version=None, requests=(), wake_at=None)
    state.looks.looked(now, _lasting([closes]))
    if closes.at_ns > now:
        return Turn(version=None, requests=(), wake_at=closes.at_ns)
    version = _version(state, [], (), closes, now, assembly) if state.is_open else None
    return Turn(version=version, requests=(), wake_at=None)


def _lasting(waiting: Sequence[Due]) -> int:
    """Return when the first of these is due whatever else comes; how long a trace has been idle changes with each span."""
    return min((one.at_ns for one in waiting if one.reason is not CloseReason.IDLE), default=NEVER)


def _log_received(state: TraceState, steps: Sequence[Step]) -> int:
    return state.log_received_ns(step.span_id for step in steps)


def _graded(
    state: TraceState, one: Group, now: int, wall: int, assembly: Assembly, *, patient: bool
) -> Graded | tuple[Question, ...]:
    """Return the graded run, or what must be read before it can be graded."""
    grading = assembly.grading_of(state.project, place_of(one).cohort.agent)
    run = _run(state, one, grading)
    if patient and (questions := unanswered(run, grading, state.evidence)):
        return questions
    about = [state.feedback[key] for key in sorted(state.feedback) if _is_about(state.feedback[key], run.run_id, state, assembly)]
    feedback = [*about, *(found for step in one.steps for found in step.feedback)]
    judgments = [state.judgments[key] for key in sorted(state.judgments)]
    before = state.runs.get(run.run_id)
    return grade(run, state.facts, judgments, feedback, before, grading, now, wall, state.evidence)


def _run(state: TraceState, one: Group, grading: Grading) -> Run:
    place = place_of(one)
    end = end_of(one, place.cohort.environment)
    run = as_run(
        project=state.project,
        trace_id=state.trace_id,
        run_id=state.run_id(one.head.span_id),
        head=one.head,
        steps=one.steps,
        place=place,
        start_ns=start_of(one, end),
        end_ns=end,
        first_received_ns=first_received(one),
        task_kind=state.attribute(grading.task_kind, one.head, *one.steps) if grading.task_kind else "",
    )
    if flags := flags_of(one, state.trace_id):
        run = msgspec.structs.replace(run, flags=tuple(sorted({*run.flags, *flags})))
    return run


def _is_about(feedback: Feedback, run_id: str, state: TraceState, assembly: Assembly) -> bool:
    """Whether feedback is about this run: it is on the whole trace, on the run or one that was merged into it, or on a span of it."""
    named = state.run_id(feedback.span_id) if feedback.span_id else feedback.run_id
    return named in ("", run_id) or state.heir_of(named, assembly.read) == run_id


def _is_news(state: TraceState, version: RunVersion) -> bool:
    before = state.runs.get(version.run.run_id)
    return before is None or not before.live or before.version < version.version


def _version(
    state: TraceState, fresh: Sequence[Graded], groups: Sequence[Group], closes: Due | None, now: int, assembly: Assembly
) -> TraceVersion | None:
    runs = tuple(one.version for one in fresh)
    written = {run.run.run_id for run in runs}
    retractions = _retractions(state, groups, written, closes, assembly)
    if not runs and not retractions and not (closes and state.is_open):
        return None
    gone = dict.fromkeys(_unwritten(state, groups), state.facts * 4)
    gone |= {one.run_id: one.version for one in retractions} | {run.run.run_id: run.version for run in runs}
    current = {key for run in runs for key in keys(run)}
    retired = sorted(key for key in state.result_keys if key.run_id in gone and key not in current)
    return TraceVersion(
        project=state.project,
        trace_id=state.trace_id,
        facts=state.facts,
        version=max([state.facts * 4, *(run.version for run in runs)]),
        runs=runs,
        retractions=retractions,
        retired=tuple(Retired(key=key, version=gone[key.run_id]) for key in retired),
        not_an_agent_run=not groups,
        close_reason=closes.reason if closes else None,
        closed_ns=now,
        first_received_ns=state.first_received_ns,
        receipts=state.receipts,
        revision=assembly.revision,
    )


def _unwritten(state: TraceState, groups: Sequence[Group]) -> set[str]:
    """Runs of which results were written and no row of their own, because their owner died in between, and that head nothing any more."""
    heads = {state.run_id(one.head.span_id) for one in groups}
    return {key.run_id for key in state.result_keys} - state.runs.keys() - heads


def _retractions(
    state: TraceState, groups: Sequence[Group], written: set[str], closes: Due | None, assembly: Assembly
) -> tuple[Retraction, ...]:
    """Runs that head no group any more. Until its heir is written a run stays, so that it is never missing from the accounting."""
    heads = {state.run_id(one.head.span_id) for one in groups}
    lost = sorted(run_id for run_id, run in state.runs.items() if run.live and run_id not in heads)
    heirs = {run_id: state.heir_of(run_id, assembly.read) for run_id in lost}
    return tuple(
        Retraction(run_id=run_id, merged_into=heir or "", version=state.facts * 4)
        for run_id, heir in heirs.items()
        if heir in written or closes is not None
    )


def keys(run: RunVersion) -> tuple[ResultKey, ...]:
    """Return the keys of the results rows that a run version writes."""
    place: Place = run.run.place
    return tuple(
        ResultKey(run_id=run.run.run_id, place=place, dimension=one.dimension, contract=one.contract) for one in run.results
    )


def touched_by(version: TraceVersion) -> set[Touched]:
    """Return the minutes of cohorts that have new results by a version."""
    written = {key.place for run in version.runs for key in keys(run)} | {one.key.place for one in version.retired}
    return {Touched(version.project, place.cohort, place.minute_ns) for place in written}


def settle(state: TraceState, version: TraceVersion) -> None:
    """Take note that a version is stored."""
    for run in version.runs:
        state.runs[run.run.run_id] = StoredRun(
            run_id=run.run.run_id,
            version=run.version,
            live=True,
            transcript_hash=run.transcript.hash if run.transcript else "",
            requested_ns=run.requested_ns,
            deadline_ns=run.deadline_ns,
            run_class=run.run_class,
        )
        state.result_keys.update(keys(run))
    for retraction in version.retractions:
        state.runs[retraction.run_id] = StoredRun(run_id=retraction.run_id, version=retraction.version, live=False)
    if version.close_reason is not None:
        state.graded_facts, state.graded_receipts = version.facts, version.receipts
