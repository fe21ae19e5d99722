"""Microsoft Semantic Kernel (dialects reference, section 12): messages in log records of Python's logging, or on the events of .NET's activities.

Every function of a kernel gets a span that says it executes a tool. Only those that a model asked for have the id of its call; the others are the
program's own, prompts among them.
"""

from typing import Final

import msgspec

from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.genai import OPERATION, kind_of, read_as
from collectors.dialects.steps import step_of
from collectors.dialects.usage import GENAI, Names, usage_of
from pipeline.model.span import Span
from pipeline.model.step import Step, StepKind

_NAME: Final = "semantic_kernel"
_COMPLETIONS: Final = ("chat.", "text.")
"""How operations of model calls begin: ``chat.completions``, ``text.streaming_completions``."""
_TOKENS: Final = Names(
    input=(*GENAI.input, "gen_ai.response.prompt_tokens"),
    output=(*GENAI.output, "gen_ai.response.completion_tokens"),
    cached=GENAI.cached,
    reasoning=GENAI.reasoning,
)


def read(span: Span) -> Step:
    """Read by operation."""
    operation = span.attributes.get(OPERATION)
    if isinstance(operation, str) and operation.startswith(_COMPLETIONS):
        step = read_as(span, _NAME, StepKind.MODEL)
        return msgspec.structs.replace(step, usage=usage_of(span.attributes, _TOKENS))
    kind = kind_of(span)
    if kind is StepKind.TOOL and "gen_ai.tool.call.id" not in span.attributes:
        return step_of(span, _NAME, StepKind.CHAIN)
    return read_as(span, _NAME, kind)


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="Microsoft Semantic Kernel, Python and .NET",
        default="nothing: model calls and agents get spans only when they are switched on",
        content="SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true, and the log records of the program, too: /v1/logs",
    ),
    marks=Marks(scopes=("semantic_kernel.*", "Microsoft.SemanticKernel*")),
    read=read,
)
