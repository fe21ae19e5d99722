"""What an OpenInference span is and whose: kinds and agents' names as frameworks really write them."""

import re
from typing import Final

from collectors.dialects.attributes import decoded, first_text
from pipeline.model.span import Span

KIND: Final = "openinference.span.kind"
OPENAI_AGENTS: Final = "openinference.instrumentation.openai_agents"
GENERATIONS: Final = '{"generations":'
"""How the output of a model call begins that LangChain serialised."""
_LANGCHAIN: Final = "openinference.instrumentation.langchain"
_CLAUDE: Final = "openinference.instrumentation.claude_agent_sdk"
LLAMA_INDEX: Final = "openinference.instrumentation.llama_index"
"""Calls an agent's run a chain, and the making of a request a model call."""
_LLAMA_AGENTS: Final = frozenset({"FunctionAgent.run", "ReActAgent.run", "CodeActAgent.run", "AgentWorkflow.run"})
_AGNO: Final = "openinference.instrumentation.agno"
"""Makes up an id for each run of an agent, and names nobody by it."""
_AGENT_OF_METADATA: Final = re.compile(r'"lc_agent_name": ?("(?:[^"\\]|\\.)+")')
_GRAPH_NODES: Final = frozenset({"agent", "model", "tools"})
"""Nodes of LangGraph's own agent graph: parts of an agent, whatever their name says."""


def kind_of(span: Span) -> str:
    """Return the span's kind, corrected for LangChain, whose tracer calls anything an agent whose name says so, and nothing else."""
    if KIND not in span.attributes:
        return _kind_of_output(span)
    kind = str(span.attributes.get(KIND)).upper()
    if span.scope_name == _LANGCHAIN and kind in ("AGENT", "CHAIN"):
        return _langchain_kind(span, kind)
    if span.scope_name == LLAMA_INDEX:
        return "AGENT" if span.name in _LLAMA_AGENTS else "CHAIN" if span.name.endswith("._prepare_chat_with_tools") else kind
    return kind


def _kind_of_output(span: Span) -> str:
    """Return what a span without its own attributes is, by the records that LangChain serialised: only its log record came, not it."""
    output = span.attributes.get("output.value")
    if not isinstance(output, str):
        return "UNKNOWN"
    if output.startswith(GENERATIONS):
        return "LLM"
    return "TOOL" if '"tool_call_id":' in output and '"type": "tool"' in output else "CHAIN"


def _langchain_kind(span: Span, kind: str) -> str:
    if "tool.name" in span.attributes or (kind == "AGENT" and str(span.attributes.get("input.value")).startswith("{'")):
        return "TOOL"
    agent = _agent_of_metadata(span)
    if agent:
        return "AGENT" if agent == span.name else "CHAIN"
    metadata = str(span.attributes.get("metadata"))
    if span.name == "LangGraph" or ('"ls_integration": "langgraph"' in metadata and "langgraph_node" not in metadata):
        return "AGENT" if kind == "AGENT" else "GRAPH"
    return "CHAIN" if span.name in _GRAPH_NODES else kind


def _agent_of_metadata(span: Span) -> str:
    metadata = span.attributes.get("metadata")
    match = _AGENT_OF_METADATA.search(metadata) if isinstance(metadata, str) else None
    name = decoded(match[1]) if match else ""
    return name if isinstance(name, str) else ""


def agent_name(span: Span) -> str:
    """Return the agent's own name: an attribute, LangChain's metadata, or the span name where that is how the framework says it."""
    node = ("graph.node.name",) if span.scope_name == _AGNO else ("graph.node.name", "graph.node.id")
    name = first_text(span.attributes, "agent.name", "gen_ai.agent.name", *node)
    if not name and span.scope_name == _LANGCHAIN:
        name = _agent_of_metadata(span)
    if name or span.attributes.get(KIND) != "AGENT" or span.scope_name in (OPENAI_AGENTS, _CLAUDE):
        return name
    return span.name.removesuffix(".run").removesuffix(".on_messages_stream")
