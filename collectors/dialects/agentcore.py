"""Amazon Bedrock AgentCore: spans of which AWS's distribution of OpenTelemetry left nothing but its own kind (dialects reference, section 11).

Spans whose instrumentation is known are read in its dialect, wherever they ran.
"""

from typing import Final

from collectors.dialects.attributes import as_text
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.genai import kind_of, read_as
from pipeline.model.span import Span
from pipeline.model.step import Step, StepKind

_NAME: Final = "agentcore"
_KIND: Final = "aws.genai.span_kind"
_KINDS: Final = {"LLM": StepKind.MODEL, "TOOL": StepKind.TOOL, "AGENT": StepKind.AGENT}


def read(span: Span) -> Step:
    """Read by AWS's own kind; content comes back from log records."""
    return read_as(span, _NAME, _KINDS.get(as_text(span.attributes.get(_KIND)), kind_of(span)))


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="Amazon Bedrock AgentCore",
        default="kinds, names and tokens; messages, arguments and results are in log records of their own",
        content="send the log records of the agent, too: /v1/logs",
    ),
    marks=Marks(attributes=("aws.genai.*",)),
    read=read,
)
