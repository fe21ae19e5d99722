"""Trajectory: the steps of one run, sub-agents included, into what happened in it: asked, done, answered, spent."""

from collections.abc import Iterable, Iterator

from pipeline.model.run import Place, Run
from pipeline.model.step import Message, Step, StepKind, ToolCall, ToolDefinition
from pipeline.scorers.calls import NO_CONTENT, has_arguments
from pipeline.stages.call_joining import joined_calls
from pipeline.stages.ending import ending
from pipeline.stages.final_answer import final_answer
from pipeline.stages.hand_offs import hand_offs
from pipeline.stages.lineage import Lineage, ModelCall
from pipeline.stages.parts import parts_of
from pipeline.stages.spending import SPOKESMEN, USAGE_INCOMPLETE, is_incomplete, retries, spending_of, usage_of


def as_run(
    *,
    project: str,
    trace_id: str,
    run_id: str,
    head: Step,
    steps: tuple[Step, ...],
    place: Place,
    start_ns: int,
    end_ns: int,
    first_received_ns: int,
    task_kind: str = "",
) -> Run:
    """Return the run that these steps are. They come by start, parents before children, and the head is one of them.

    ``task_kind`` is empty where no attribute names one.
    """
    lineage = Lineage(head, steps, place.cohort.agent)
    first = next((call for call in lineage.model_calls if call.step.span_id in lineage.own and call.input), None)
    tools = _tools(lineage)
    calls = joined_calls(lineage, {tool.name: tool for tool in tools})
    spending = spending_of(lineage)
    answer = final_answer(lineage)
    ended, error = ending(lineage, answer)
    return Run(
        project=project,
        trace_id=trace_id,
        run_id=run_id,
        head_span_id=head.span_id,
        place=place,
        start_ns=start_ns,
        end_ns=end_ns,
        first_received_ns=first_received_ns,
        steps=steps,
        agents=_agents(steps, place.cohort.agent),
        conversation_id=_conversation(lineage),
        system=_system(lineage, first),
        request=_request(lineage, first),
        answer=answer,
        messages=_history(lineage, first),
        tool_calls=calls,
        tools=tools,
        models=_distinct(call.model for call in lineage.model_calls) or _distinct(step.model for step in steps),
        model_calls=len(lineage.model_calls),
        retries=retries(lineage),
        usage=usage_of(one for _, one in spending),
        billed=tuple(one for _, one in spending),
        hand_offs=hand_offs(lineage),
        parts=parts_of(lineage, calls, spending),
        task_kind=task_kind or place.cohort.agent,
        ended=ended,
        error=error,
        dialects=tuple(sorted({step.dialect for step in steps if step.dialect})),
        flags=_flags(lineage, calls, {USAGE_INCOMPLETE} if is_incomplete(spending) else set()),
    )


def _flags(lineage: Lineage, calls: tuple[ToolCall, ...], flags: set[str]) -> tuple[str, ...]:
    """Return these and the flags of all steps, but that content is missing only where no other step has it."""
    flags = flags.union(*(step.flags for step in lineage.steps))
    silent = any(not call.input and not call.output for call in lineage.model_calls)
    if not silent and all(has_arguments(call) or call.raw_arguments or call.result is not None for call in calls):
        flags.discard(NO_CONTENT)
    return tuple(sorted(flags))


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def _agents(steps: tuple[Step, ...], own: str) -> tuple[str, ...]:
    """Return the agents below the run's own; frameworks nest spans of one agent, and its name is no sub-agent's."""
    return tuple(name for name in _distinct(step.agent for step in steps if step.kind is StepKind.AGENT) if name != own)


def _conversation(lineage: Lineage) -> str:
    """Return the head's conversation, else the first that one of the run's own steps names: sub-agents may have one of theirs."""
    named = (step.conversation_id for step in lineage.steps if step.span_id in lineage.own and step.conversation_id)
    return lineage.head.conversation_id or next(named, "")


def _inputs(lineage: Lineage, first: ModelCall | None) -> Iterator[tuple[Message, ...]]:
    """Yield what the run was given, nearest to the user first: the head's own input, its agents', the first model call's."""
    yield lineage.head.input
    for step in lineage.steps:
        if step.kind in SPOKESMEN and step.span_id in lineage.own:
            yield step.input
    if first is not None:
        yield first.input


def _request(lineage: Lineage, first: ModelCall | None) -> str:
    """Return what the user asked in this turn: the last user message, since history that is replayed comes before it."""
    for messages in _inputs(lineage, first):
        said = [message.text for message in messages if message.role == "user" and message.text]
        if said:
            return said[-1]
    return ""


def _system(lineage: Lineage, first: ModelCall | None) -> str:
    """Return the instructions that the first model call was given, else those of the agents."""
    for messages in (first.input if first else (), *_inputs(lineage, None)):
        rules = [message.text for message in messages if message.role == "system" and message.text]
        if rules:
            return "\n\n".join(rules)
    return ""


def _history(lineage: Lineage, first: ModelCall | None) -> tuple[Message, ...]:
    """Return the conversation up to the first answer, without the instructions, which stand in ``system``."""
    given = first.input if first else next((messages for messages in _inputs(lineage, None) if messages), ())
    return tuple(message for message in given if message.role != "system")


def _tools(lineage: Lineage) -> tuple[ToolDefinition, ...]:
    """Return the tools that any model or agent of the run was offered. That a tool was executed is no offer: the list must be whole."""
    offers = [call.tools for call in lineage.model_calls] + [step.tools for step in lineage.steps if step.kind in SPOKESMEN]
    found: dict[str, ToolDefinition] = {}
    for tool in (tool for offer in offers for tool in offer):
        if tool.name not in found or found[tool.name].schema is None:
            found[tool.name] = tool
    return tuple(found.values())
