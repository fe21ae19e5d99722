"""Codex CLI (dialects reference, section 12): spans of a coding assistant's program, among which turns and model calls are told by their tokens.

Calls of tools are in log records that belong to no span of a call, so that a run shows none.
"""

from typing import Final

import msgspec

from collectors.dialects.attributes import first_text
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.genai import read_as
from collectors.dialects.renaming import renamed
from collectors.dialects.steps import step_of
from pipeline.model.span import Span
from pipeline.model.step import Step, StepKind

_NAME: Final = "codex"
_TURN: Final = "session_task.turn"
_TOTALS: Final = "codex.turn.token_usage."
_TOKENS: Final = {
    _TOTALS + "input_tokens": "gen_ai.usage.input_tokens",
    _TOTALS + "output_tokens": "gen_ai.usage.output_tokens",
    _TOTALS + "cached_input_tokens": "gen_ai.usage.cache_read.input_tokens",
    _TOTALS + "reasoning_output_tokens": "gen_ai.usage.reasoning.output_tokens",
}


def read(span: Span) -> Step:
    """Read a turn as a run of the assistant, what has tokens of its own as a model call, and anything else as the program's own affair."""
    attributes = span.attributes
    if span.name == _TURN or _TOTALS + "input_tokens" in attributes:
        step = read_as(renamed(span, _TOKENS), _NAME, StepKind.AGENT)
        conversation = step.conversation_id or first_text(attributes, "conversation.id", "thread.id")
        return msgspec.structs.replace(step, kind=StepKind.AGENT, agent=_NAME, conversation_id=conversation)
    if "gen_ai.usage.input_tokens" in attributes:
        return msgspec.structs.replace(
            read_as(span, _NAME, StepKind.MODEL), model=first_text(attributes, "gen_ai.request.model", "model")
        )
    return step_of(span, _NAME, StepKind.OTHER)


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="Codex CLI",
        default="nothing: with [otel] exporters set, turns and tokens",
        content="messages, arguments and results are not on its spans",
    ),
    marks=Marks(scopes=("codex*",), attributes=(_TOTALS + "*",)),
    read=read,
)
