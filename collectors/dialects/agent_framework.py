"""Microsoft Agent Framework (dialects reference, section 12): OpenTelemetry's conventions, and spans of a workflow around them.

An agent that nobody named goes by its id, which is another one in every process: it is no name to compare runs under.
"""

from typing import Final

import msgspec

from collectors.dialects.attributes import first_text
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.genai import kind_of, read_as
from collectors.dialects.steps import step_of
from pipeline.model.span import Span
from pipeline.model.step import Step, StepKind

_NAME: Final = "agent_framework"
_WORKFLOW: Final = {
    "workflow.run": StepKind.ORCHESTRATION,
    "workflow.build": StepKind.OTHER,
    "executor.process": StepKind.CHAIN,
    "edge_group.process": StepKind.CHAIN,
    "message.send": StepKind.OTHER,
}
"""By the first word of the name. Of edges, several may lead to one executor: they are links, and it is nobody's child but the workflow's."""
_UNNAMED: Final = frozenset({"", "UnnamedAgent"})


def read(span: Span) -> Step:
    """Read by operation, spans of a workflow by name."""
    wrapper = _WORKFLOW.get(span.name.partition(" ")[0])
    if wrapper is not None:
        return step_of(span, _NAME, wrapper)
    kind = kind_of(span)
    step = read_as(span, _NAME, kind)
    if kind is not StepKind.AGENT:
        return step
    named = first_text(span.attributes, "gen_ai.agent.name")
    if named in _UNNAMED or named == first_text(span.attributes, "gen_ai.agent.id"):
        named = first_text(span.resource, "service.name")
    return msgspec.structs.replace(step, kind=kind, agent=named, model="" if step.model == "unknown" else step.model)


DIALECT: Final = Dialect(
    name=_NAME,
    about=About(
        title="Microsoft Agent Framework, Python and .NET",
        default="nothing: spans are made once ENABLE_INSTRUMENTATION=true; then names, models, tokens and errors",
        content="ENABLE_SENSITIVE_DATA=true",
    ),
    marks=Marks(
        scopes=("agent_framework", "agent_framework.*", "Microsoft.Agents.AI*", "Experimental.Microsoft.Agents.AI*"),
        attributes=("gen_ai.provider.name=microsoft.agent_framework",),
    ),
    read=read,
)
