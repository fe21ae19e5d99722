"""What a run lacks for being graded whole, and what its sender can do about it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from collectors.dialects.dialect import Dialect
from pipeline.model.run import UNKNOWN, Run
from pipeline.model.step import StepKind

_SWITCH: Final = "switch content on"


class Missing(msgspec.Struct, frozen=True):
    """Something that is not there: what, what that costs, and how to have it."""

    what: str
    so: str
    how: str


class Content(msgspec.Struct, frozen=True):
    """What a dialect captures by default, and how to switch content on; empty where it is on by default."""

    dialect: str
    title: str
    default: str
    switch: str


def missing(run: Run) -> tuple[Missing, ...]:
    """Return what the run lacks, the most costly first."""
    return (*_content(run), *_identity(run))


def content(run: Run, lacks: Iterable[Missing], dialects: Mapping[str, Dialect]) -> tuple[Content, ...]:
    """Return how the run's dialects are told to send content, if it lacks any."""
    if not any(one.how == _SWITCH for one in lacks):
        return ()
    known = [dialects[name] for name in run.dialects if name in dialects]
    return tuple(Content(one.name, one.about.title, one.about.default, one.about.content) for one in known)


def _content(run: Run) -> Iterator[Missing]:
    models = [step for step in run.steps if step.kind is StepKind.MODEL]
    silent = [step for step in models if not step.input and not step.output]
    calls = run.tool_calls
    if silent:
        what = f"the messages of {len(silent)} of {len(models)} model calls"
        yield Missing(what, "nobody can judge what was asked and answered", _SWITCH)
    bare = [call for call in calls if call.arguments is None and not call.raw_arguments]
    if bare:
        what = f"the arguments of {len(bare)} of {len(calls)} tool calls"
        yield Missing(what, "checks of arguments and loops see names only", _SWITCH)
    mute = [call for call in calls if call.result is None and call.error is None]
    if mute:
        what = f"the results of {len(mute)} of {len(calls)} tool calls"
        yield Missing(what, "an error that only a result tells of is not seen", _SWITCH)
    if not run.answer:
        how = _SWITCH if silent or not models else "the agent gave none in this trace"
        yield Missing("a final answer", "the run is not judged, since only completed runs are", how)
    told = _SWITCH if silent or not models else "no message in this trace holds any"
    if not run.request:
        yield Missing("the user's request", "a judge cannot tell whether the run did what was asked for", told)
    if not run.system:
        yield Missing("the instructions", "a judge cannot tell whether the agent kept to them", told)
    if models and run.usage.input is None:
        yield Missing("tokens", "nobody knows what the run spent", "streams report them only where the client asks for usage")
    if calls and not run.tools:
        yield Missing(
            "the tools that were offered", "calls of unknown tools and arguments that fit no schema are not seen", _SWITCH
        )


def _identity(run: Run) -> Iterator[Missing]:
    cohort = run.place.cohort
    if cohort.agent == UNKNOWN:
        yield Missing("the agent's name", "its runs are mixed with those of other agents", "name the agent, or set service.name")
    if cohort.version == UNKNOWN:
        yield Missing("a version", "one release cannot be compared with the next", "set the resource attribute service.version")
    if cohort.environment == UNKNOWN:
        yield Missing("an environment", "tests count with production", "set the resource attribute deployment.environment.name")
    if not run.conversation_id:
        yield Missing(
            "a conversation", "turns of one conversation are not put together", "set gen_ai.conversation.id or session.id"
        )
