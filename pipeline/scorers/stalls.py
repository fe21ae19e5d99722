"""stalls: replies in which an agent only says or asks again what it did before, and has learned nothing since (spec section 4.2).

Where agents hand a task to and fro without end, or a model repeats itself, no tool is called and ``loops`` sees nothing.
"""

from collections.abc import Hashable, Iterator
from typing import Final

import msgspec

from pipeline.model.run import Run
from pipeline.model.step import Message, Step, StepKind
from pipeline.scorers.calls import canonical
from pipeline.scorers.check import Check, Finding, Missing, check_of, measured, unknown

STALLS: Final = "stalls"
_ACTORS: Final = (StepKind.AGENT, StepKind.ORCHESTRATION, StepKind.TOOL, StepKind.MODEL)
_SHOWN: Final = 300


def stalls_check() -> Check:
    """Return the check."""
    definition = {"rule": "replies without a tool call that repeat one of the same agent, nothing new since", "version": 1}
    return check_of(STALLS, definition, stalls)


class _Reply(msgspec.Struct, frozen=True):
    """What one model call gave, by whom."""

    agent: str
    output: tuple[Message, ...]

    @property
    def key(self) -> Hashable:
        """What replies have in common that say and ask for the same."""
        said = " ".join(" ".join(message.text.split()) for message in self.output)
        asked = tuple((call.name, canonical(call.arguments)) for message in self.output for call in message.tool_calls)
        return self.agent, said, asked

    def __str__(self) -> str:
        said = [message.text for message in self.output if message.text]
        asked = [f"{call.name}()" for message in self.output for call in message.tool_calls]
        return f"{self.agent}: {' '.join([*said, *asked])}"[:_SHOWN]


def stalls(run: Run) -> Finding | None:
    """Count replies that repeat; absent with fewer than two, unknown where some were not captured.

    A repeated call of a tool counts in ``loops``, not here. What a tool or a search returned, or another agent said, is new the first time.
    """
    if run.model_calls < 2:  # noqa: PLR2004 - one cannot repeat another
        return None
    called = {call.name for call in run.tool_calls}
    if not _may_stall(run, called):
        return measured(0.0, holds=True)
    known, unread = 0, 0
    seen: set[Hashable] = set()
    last: dict[Hashable, int] = {}
    """How much was known just after a reply was given."""
    repeated: list[_Reply] = []
    for event in _events(run):
        if not isinstance(event, _Reply):
            known += event not in seen
            seen.add(event)
            continue
        unread += not event.output
        if not event.output or _calls_any(event.output, called):
            continue
        if last.get(event.key) == known:
            repeated.append(event)
        known += event.key not in last
        last[event.key] = known
    if unread:
        why = f"{unread} of {run.model_calls} replies"
        return unknown(Missing.MESSAGES_NOT_CAPTURED, why, lower=float(len(repeated)), upper=float(run.model_calls - 1))
    reason = f"{len(repeated)} of {run.model_calls} replies only repeat an earlier one" if repeated else ""
    evidence = str(repeated[0]) if repeated else ""
    return measured(float(len(repeated)), holds=not repeated, reason=reason, evidence=evidence)


def _may_stall(run: Run, called: set[str]) -> bool:
    """Whether two replies could be alike and call no tool, or some were not captured: in most runs all but the answer call one."""
    quiet = 0
    for step in run.steps:
        if step.kind is StepKind.MODEL:
            if not step.output:
                return True
            quiet += not _calls_any(step.output, called)
    return quiet > 1


def _calls_any(output: tuple[Message, ...], called: set[str]) -> bool:
    return any(call.name in called for message in output for call in message.tool_calls)


def _events(run: Run) -> Iterator[_Reply | Hashable]:
    """Yield in order the run's replies, each once though several spans may tell of it, and what tools and searches returned."""
    actors: dict[str, Step | None] = {}
    agents: dict[str, str] = {}
    steps = {step.span_id: step for step in run.steps}
    tops: dict[str, str] = {}
    inside: dict[str, list[Step]] = {}
    for step in run.steps:  # parents before children
        above = steps.get(step.parent_id)
        actor = actors[step.span_id] = above if above and above.kind in _ACTORS else actors.get(step.parent_id)
        agents[step.span_id] = step.agent if step.kind is StepKind.AGENT and step.agent else agents.get(step.parent_id, "")
        if step.kind is StepKind.MODEL and actor is not None and actor.kind is StepKind.MODEL:
            top = tops[step.span_id] = tops.get(actor.span_id, actor.span_id)
            inside.setdefault(top, []).append(step)
    for step in run.steps:
        if step.kind is StepKind.MODEL and step.span_id not in tops:
            views = (step, *inside.get(step.span_id, ()))
            yield _Reply(agents[step.span_id] or run.place.cohort.agent, next((one.output for one in views if one.output), ()))
        elif step.kind is StepKind.TOOL and step.tool is not None:
            returned = step.tool.result if step.tool.error is None else step.tool.error
            yield step.tool.name, step.span_id if returned is None else returned
        elif step.kind is StepKind.RETRIEVAL:
            yield tuple(message.text for message in step.output)
