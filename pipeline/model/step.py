"""Step: one span as its dialect understands it."""

from enum import StrEnum
from typing import Any

import msgspec

from pipeline.model.result import Feedback


class StepKind(StrEnum):
    """What a step does in a run. Only AGENT and ORCHESTRATION spans can head one by themselves."""

    AGENT = "agent"
    ORCHESTRATION = "orchestration"
    """Sits above agents and stands for the whole run: a workflow, a swarm, a graph, ADK's ``invocation``."""
    CHAIN = "chain"
    """A wrapper inside a run; heads one only where it is the root above an agent."""
    MODEL = "model"
    TOOL = "tool"
    RETRIEVAL = "retrieval"
    IGNORED = "ignored"
    """Not part of any run: evaluators, product telemetry, pending copies, ``create_agent``."""
    OTHER = "other"


class ToolCall(msgspec.Struct, frozen=True):
    """A call of a tool, as asked for by a model or as executed.

    ``arguments`` is the parsed JSON value, or None where it was not captured or does not parse (then ``raw_arguments`` has the text).
    ``result`` is the text the tool returned, None where it was not captured. ``error`` is None unless the call failed.
    ``agent`` is the path of the sub-agent that made the call (:class:`~pipeline.model.run.Part`), empty where the run's own agent did.
    """

    name: str
    id: str = ""
    arguments: Any = None
    raw_arguments: str = ""
    result: str | None = None
    error: str | None = None
    agent: str = ""


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation. ``role`` is system, user, assistant or tool."""

    role: str
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""


class ToolDefinition(msgspec.Struct, frozen=True):
    """A tool that the model was offered; ``schema`` is the JSON Schema of its arguments, where captured."""

    name: str
    schema: dict[str, Any] | None = None


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one model call, and what the sender says that it cost.

    ``input`` includes ``cached`` and ``cache_written``, ``output`` includes ``reasoning``; None is unknown. ``cost_usd`` is the sender's own
    word and never what a run cost: that is made of tokens and prices (:class:`~pipeline.model.spending.Cost`).
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None
    cost_usd: float | None = None
    cache_written: int | None = None


class Step(msgspec.Struct, frozen=True):
    """One span, read. Identity and times come from the span; the rest is what its dialect makes of it."""

    span_id: str
    parent_id: str
    name: str
    start_ns: int
    end_ns: int
    received_ns: int
    kind: StepKind = StepKind.OTHER
    dialect: str = ""
    """Name of the dialect that recognised the span; empty where none did."""
    agent: str = ""
    agent_version: str = ""
    service: str = ""
    service_version: str = ""
    environment: str = ""
    conversation_id: str = ""
    model: str = ""
    provider: str = ""
    input: tuple[Message, ...] = ()
    """Messages that the step was given, history included."""
    output: tuple[Message, ...] = ()
    """Messages that the step produced."""
    tool: ToolCall | None = None
    """The call that this TOOL step executed."""
    tools: tuple[ToolDefinition, ...] = ()
    """Tools offered to the model or agent."""
    usage: Usage | None = None
    error: str | None = None
    """Why the step failed; None unless it did."""
    most_rounds: int = 0
    """How many rounds an agent may take before its framework ends it; 0 where the span does not say."""
    parent_is_remote: bool = False
    feedback: tuple[Feedback, ...] = ()
    """What others found who evaluated this very step; never a judgment of ours."""
    flags: tuple[str, ...] = ()
    """What the reader should know: ``unrecognised``, ``truncated``, ``dropped``, ``no_content``, ``converted`` …"""
