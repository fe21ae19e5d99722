"""OpenLIT (dialects reference, section 12): OpenTelemetry's conventions, with older names for arguments and for what agents were given and gave."""

from typing import Final

import msgspec

from collectors.dialects.attributes import first_text
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.genai import OPERATION, kind_of, read_as
from collectors.dialects.renaming import renamed
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind

_NAME: Final = "openlit"
_NAMES: Final = {
    "gen_ai.tool.args": "gen_ai.tool.call.arguments",
    "gen_ai.tool.result": "gen_ai.tool.call.result",
    "gen_ai.agent.instructions": "gen_ai.system_instructions",
}
_KINDS: Final = {
    "agent": StepKind.AGENT,
    "framework": StepKind.CHAIN,
    "vectordb": StepKind.RETRIEVAL,
}
"""Operations that the conventions do not know."""


def read(span: Span) -> Step:
    """Read by operation."""
    span = renamed(span, _NAMES)
    kind = _KINDS.get(first_text(span.attributes, OPERATION), kind_of(span))
    step = read_as(span, _NAME, kind)
    if kind is not StepKind.AGENT:
        return step
    task, result = first_text(span.attributes, "gen_ai.agent.task"), first_text(span.attributes, "gen_ai.agent.actual_output")
    return msgspec.structs.replace(
        step,
        kind=kind,
        agent=step.agent or first_text(span.attributes, "gen_ai.agent.role") or first_text(span.resource, "service.name"),
        input=step.input or ((Message("user", task),) if task else ()),
        output=step.output or ((Message("assistant", result),) if result else ()),
    )


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="OpenLIT",
        default="everything: messages, arguments, results and tokens; capture_message_content=False leaves content out",
    ),
    marks=Marks(scopes=("openlit*",)),
    read=read,
)
