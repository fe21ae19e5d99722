"""CrewAI, as the instrumentations of Traceloop and of Arize see it; its own product telemetry is no part of any run (dialects reference, section 12).

Traceloop's says of crews, agents and tasks alike that they invoke an agent, and makes no spans of tools. Arize's names agents by their role, and
wraps what was called and what came out of it into CrewAI's own objects.
"""

from typing import Any, Final

import msgspec

from collectors.dialects import openinference, openllmetry
from collectors.dialects.attributes import as_dict, first_text, structured
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.executions import given, returned, tool_step
from collectors.dialects.steps import OPAQUE
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind

_NAME: Final = "crewai"
_ARIZE: Final = "openinference.instrumentation.crewai"
_TRACELOOP: Final = "opentelemetry.instrumentation.crewai*"
_METHODS: Final = ("._execute_core", "._use", "._run", ".kickoff")
"""The method that a span is of, after whose it is."""


def read(span: Span) -> Step:
    """Read in the dialect of the instrumentation, without the objects of CrewAI around what was said."""
    return _of_arize(span) if span.scope_name == _ARIZE else _of_traceloop(span)


def _of_traceloop(span: Span) -> Step:
    step = msgspec.structs.replace(openllmetry.DIALECT.read(span), dialect=_NAME)
    if span.attributes.get("traceloop.span.kind") != "workflow":
        return step
    result = first_text(span.attributes, "crewai.crew.result")
    output = (Message("assistant", result),) if result else step.output
    return msgspec.structs.replace(step, kind=StepKind.ORCHESTRATION, output=output)


def _of_arize(span: Span) -> Step:
    step = msgspec.structs.replace(openinference.DIALECT.read(span), dialect=_NAME)
    if step.kind is StepKind.TOOL:
        return _tool(span)
    said = _object(span, "output.value").get("raw")  # of a CrewOutput or a TaskOutput
    if isinstance(said, str):
        flags = tuple(flag for flag in step.flags if flag != OPAQUE)
        step = msgspec.structs.replace(step, output=(Message("assistant", said),), flags=flags)
    return msgspec.structs.replace(step, agent=_bare(step.agent))


def _tool(span: Span) -> Step:
    """Read a use of a tool: the call that was parsed is one of the arguments of the method that uses it."""
    name = first_text(span.attributes, "tool.name") or _bare(span.name)
    inputs = _object(span, "input.value")
    call = as_dict(structured(inputs.get("calling")))
    got = given(call["arguments"] if "arguments" in call else inputs or span.attributes.get("input.value"))
    return tool_step(span, _NAME, name, "", got, returned(span.attributes.get("output.value")), agent="")


def _bare(name: str) -> str:
    return next((name.removesuffix(method) for method in _METHODS if name.endswith(method)), name)


def _object(span: Span, key: str) -> dict[str, Any]:
    return as_dict(structured(span.attributes.get(key)))


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="CrewAI, under OpenInference or OpenLLMetry",
        default="what the instrumentation captures, which is everything; OpenLLMetry makes no spans of tools",
    ),
    marks=Marks(scopes=(_TRACELOOP, _ARIZE)),
    read=read,
)
