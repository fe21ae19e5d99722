"""Lineage: who is above whom among the steps of one run, and which steps tell of the same thing.

Two instrumentations often see one model call, or one tool call, and make a span each, one inside the other: they count once.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Final

import msgspec

from pipeline.model.step import Message, Step, StepKind, ToolCall, ToolDefinition, Usage
from pipeline.scorers.calls import canonical
from pipeline.stages.usages import told_of

GUARDRAIL: Final = "guardrail"
"""Flag of a step that checks the agent: what happens below it does not speak for the run."""
DEEPEST: Final = 8
"""Names in a path; agents below that are taken together by name."""
TRANSPORT: Final = "transport"
"""Flag of a step that carries a call to where it is executed (MCP): the call's own, where no other step tells of it."""
_ACTORS: Final = (StepKind.AGENT, StepKind.ORCHESTRATION, StepKind.TOOL, StepKind.MODEL)


class ModelCall(msgspec.Struct, frozen=True):
    """One call of a model: its outermost step, completed by what steps inside it say of the same call."""

    step: Step
    input: tuple[Message, ...]
    output: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    usage: Usage | None
    model: str


def _within_others(group: list[Step], call_id: str = "") -> Iterator[Step]:
    """Yield those of some executions of one tool that lie within the time of another: all that have its id and arguments, else transports."""
    around: Step | None = None
    for step in sorted(group, key=lambda one: (one.start_ns, -_end(one), TRANSPORT in one.flags, one.span_id)):
        if (
            around is not None
            and _end(step) <= _end(around)
            and (_same_arguments(step, around) if call_id else TRANSPORT in step.flags)
        ):
            yield step
        elif call_id or TRANSPORT not in step.flags:
            around = step if around is None or _end(step) > _end(around) else around


def _end(step: Step) -> int:
    return max(step.start_ns, step.end_ns)


def _same_arguments(one: Step, other: Step) -> bool:
    given = [step.tool.arguments for step in (one, other) if step.tool is not None and step.tool.arguments is not None]
    return len(given) < 2 or canonical(given[0]) == canonical(given[1])  # noqa: PLR2004 - what only one of them tells does not differ


def _is_of_the_same_tool(one: Step, other: Step) -> bool:
    if one.tool is None or other.tool is None:
        return False
    return one.kind is other.kind is StepKind.TOOL and one.tool.name == other.tool.name


class Lineage:
    """The steps of one run as a tree below its head; steps whose parent is unknown hang below the head."""

    def __init__(self, head: Step, steps: tuple[Step, ...], agent: str = "") -> None:
        """Take the name of the run's own ``agent``, which is no sub-agent's."""
        self.agent = agent
        self.head = head
        self.steps = steps
        known = {step.span_id for step in steps}
        self._children: dict[str, list[Step]] = {}
        adopted: list[Step] = []
        for step in steps:
            if step.parent_id in known:
                self._children.setdefault(step.parent_id, []).append(step)
            elif step.span_id != head.span_id:
                adopted.append(step)
        self._children.get(head.parent_id, [head]).remove(head)
        self._actors = self._walk(head)
        for step in (*adopted, *steps):
            if step.span_id not in self._actors:
                if step.parent_id in known:  # in a cycle, or below one: cut it open here
                    self._children[step.parent_id].remove(step)
                self._children.setdefault(head.span_id, []).append(step)
                self._actors |= self._walk(step)

    def children(self, step: Step) -> list[Step]:
        """Steps directly below."""
        return self._children.get(step.span_id, [])

    def _walk(self, top: Step) -> dict[str, Step | None]:
        """Return the nearest agent, tool or model step above each step from ``top`` on down; none is known above ``top``."""
        found: dict[str, Step | None] = {}
        waiting: list[tuple[Step, Step | None]] = [(top, None)]
        while waiting:
            step, actor = waiting.pop()
            found[step.span_id] = actor
            below = step if step.kind in _ACTORS else actor
            waiting.extend((child, below) for child in self.children(step))
        return found

    def repeats(self, step: Step) -> bool:
        """Whether the step tells again of the call that the step above it is about, or one beside it."""
        if step.span_id in self._twice:
            return True
        above = self._actors.get(step.span_id)
        if above is None or above.kind is not step.kind:
            return False
        return step.kind is StepKind.MODEL or _is_of_the_same_tool(step, above)

    @cached_property
    def _twice(self) -> frozenset[str]:
        """Ids of steps that tell of a call which a step beside them is about: within its time, with its id, or its transport."""
        groups: dict[tuple[str, ...], list[Step]] = {}
        for step in self.steps:
            if step.kind is StepKind.TOOL and step.tool is not None:
                keys = [(step.tool.name,), *([(step.tool.name, step.tool.id)] if step.tool.id else ())]
                for key in keys:
                    groups.setdefault(key, []).append(step)
        return frozenset(
            step.span_id for key, group in groups.items() if len(group) > 1 for step in _within_others(group, *key[1:])
        )

    def whole(self, step: Step) -> Step:
        """Return an execution completed by the steps inside it that tell of the same call; of several attempts the last is how it ended."""
        inside = [one.tool for one in self._inside.get(step.span_id, ()) if one.tool is not None]
        if not inside or step.tool is None:
            return step
        calls = [step.tool, *inside]
        call = msgspec.structs.replace(
            step.tool,
            id=next((one.id for one in calls if one.id), ""),
            arguments=next((one.arguments for one in calls if one.arguments is not None), None),
            result=next((one.result for one in calls if one.result is not None), None),
            error=step.tool.error or inside[-1].error,
        )
        return msgspec.structs.replace(step, tool=call)

    @cached_property
    def _inside(self) -> dict[str, list[Step]]:
        """Executions below another one of the same tool, by the outermost: of one call, whoever made a span of it."""
        found: dict[str, list[Step]] = {}
        tops: dict[str, Step] = {}
        for step in self.steps:
            above = self._actors.get(step.span_id)
            if above is not None and _is_of_the_same_tool(step, above):
                top = tops[step.span_id] = tops.get(above.span_id, above)
                found.setdefault(top.span_id, []).append(step)
        return found

    @cached_property
    def model_calls(self) -> tuple[ModelCall, ...]:
        """The run's model calls in order, sub-agents' included, each once."""
        return tuple(self._merged(step) for step in self.steps if step.kind is StepKind.MODEL and not self.repeats(step))

    def _merged(self, step: Step) -> ModelCall:
        inner = [one for one in self.below(step) if one.kind is StepKind.MODEL]
        views = (step, *inner)
        return ModelCall(
            step=step,
            input=next((one.input for one in views if one.input), ()),
            output=next((one.output for one in views if one.output), ()),
            tools=next((one.tools for one in views if one.tools), ()),
            usage=told_of(step, [(one, self._actors[one.span_id] or step) for one in inner]) if inner else step.usage,
            model=next((one.model for one in views if one.model), ""),
        )

    def below(self, step: Step) -> Iterator[Step]:
        """Yield what is below a step and tells of the same act: down to the next agent or tool."""
        waiting = list(self.children(step))
        while waiting:
            child = waiting.pop()
            if child.kind in (StepKind.AGENT, StepKind.ORCHESTRATION, StepKind.TOOL):
                continue
            yield child
            waiting.extend(self.children(child))

    @cached_property
    def own(self) -> frozenset[str]:
        """Ids of the steps that are the run's own: not those below a tool, a guardrail, or an agent that was called like a tool.

        An agent that took over is the run's own; one that was called returns to its caller, who goes on.
        """
        called = {call.name for one in self.model_calls for message in one.output for call in message.tool_calls}
        found: set[str] = set()
        waiting = [self.head]
        while waiting:
            step = waiting.pop()
            if step.span_id != self.head.span_id and step.kind is StepKind.AGENT and step.agent in called:
                continue
            found.add(step.span_id)
            if step.kind is not StepKind.TOOL and GUARDRAIL not in step.flags:
                waiting.extend(self.children(step))
        return frozenset(found)

    @property
    def last_flags(self) -> tuple[str, ...]:
        """Flags of the last model call of the run's own agents."""
        own = (one.step for one in self.model_calls if one.step.span_id in self.own)
        last = max(own, key=lambda step: (step.end_ns or step.start_ns, step.start_ns), default=None)
        return last.flags if last is not None else ()

    @cached_property
    def called_agents(self) -> tuple[Step, ...]:
        """Agents that were called like a tool, and whose call no tool span shows."""
        above = self._actors
        return tuple(
            step
            for step in self.steps
            if step.kind is StepKind.AGENT
            and step.span_id not in self.own
            and (actor := above.get(step.span_id)) is not None
            and actor.kind is not StepKind.TOOL
            and actor.agent != step.agent
        )

    @cached_property
    def paths(self) -> dict[str, str]:
        """The path of the agent at work in each step; of an agent's own step, that agent's (:class:`~pipeline.model.run.Part`)."""
        if all(step.agent in ("", self.agent) for step in self.steps if step.kind is StepKind.AGENT):  # as in most runs
            return dict.fromkeys((step.span_id for step in self.steps), "")
        found: dict[str, str] = {}
        waiting: list[tuple[Step, tuple[str, ...], str]] = [(self.head, (), "")]
        while waiting:
            step, names, path = waiting.pop()
            if step.kind is StepKind.AGENT and step.agent and step.agent != (names[-1] if names else self.agent):
                names = (*names[: DEEPEST - 1], step.agent)
                path = "/".join(name.replace("/", "%2F") for name in names)
            found[step.span_id] = path
            waiting.extend((child, names, path) for child in self.children(step))
        return found

    def made_in(self, step: Step, call: ToolCall) -> ToolCall:
        """Return the call as that of the agent which made it in this step."""
        path = self.paths[step.span_id]
        return msgspec.structs.replace(call, agent=path) if path else call

    def caller(self, agent: Step) -> Step:
        """Return the step in which an agent was called."""
        return self._actors[agent.span_id] or self.head
