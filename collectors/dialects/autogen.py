"""AutoGen (dialects reference, section 12): agents and tools by OpenTelemetry's conventions, without arguments, results or model calls.

Who wants those adds an instrumentation of the model's client: its requests tell the arguments and the results, by the ids of the calls. The
creation of an agent is a trace of its own and no run. The spans of the runtime carry messages between agents.
"""

from typing import Final

from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.genai import kind_of, read_as
from pipeline.model.span import Span
from pipeline.model.step import Step

_NAME: Final = "autogen"


def read(span: Span) -> Step:
    """Read by operation; spans of the runtime have none, and are known and say nothing."""
    return read_as(span, _NAME, kind_of(span))


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="AutoGen",
        default="agents, tools and errors by name; no model calls, no messages, no arguments and no results",
        content="add an instrumentation of the model's client, such as openinference-instrumentation-openai",
    ),
    marks=Marks(scopes=("autogen-core", "autogen *"), attributes=("gen_ai.system=autogen",)),
    read=read,
)
