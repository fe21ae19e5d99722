"""Lineage: who is above whom among the steps of one run, and which steps tell of the same thing.

Two instrumentations often see one model call, or one tool call, and make a span each, one inside the other: they count once.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Final

import msgspec

from pipeline.model.step import Message, Step, StepKind, ToolDefinition, Usage

GUARDRAIL: Final = "guardrail"
"""Flag of a step that checks the agent: what happens below it does not speak for the run."""
_ACTORS: Final = (StepKind.AGENT, StepKind.ORCHESTRATION, StepKind.TOOL, StepKind.MODEL)


class ModelCall(msgspec.Struct, frozen=True):
    """One call of a model: its outermost step, completed by what steps inside it say of the same call."""

    step: Step
    input: tuple[Message, ...]
    output: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    usage: Usage | None
    model: str


class Lineage:
    """The steps of one run as a tree below its head; steps whose parent is unknown hang below the head."""

    def __init__(self, head: Step, steps: tuple[Step, ...]) -> None:
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
        """Whether the step tells again of the call that the step above it is about."""
        above = self._actors.get(step.span_id)
        if above is None or above.kind is not step.kind:
            return False
        if step.kind is StepKind.TOOL:
            return above.tool is not None and step.tool is not None and above.tool.name == step.tool.name
        return step.kind is StepKind.MODEL

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
            usage=next((one.usage for one in views if one.usage), None),
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
