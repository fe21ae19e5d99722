"""Dialects: how each instrumentation writes down what an agent did. One module each; docs/dialects.md says how to write another one."""

from typing import Final

from collectors.dialects import (
    adk,
    agent_framework,
    agentcore,
    any_agent,
    autogen,
    codex,
    crewai,
    gemini_cli,
    genai,
    genkit,
    koog,
    langfuse,
    langsmith,
    litellm,
    logfire,
    mlflow,
    openai_agents,
    openinference,
    openlit,
    openllmetry,
    pydantic_ai,
    semantic_kernel,
    strands,
    vercel,
    vercel_v7,
)
from collectors.dialects.dialect import Dialect
from collectors.dialects.reader import Reader

DIALECTS: Final[tuple[Dialect, ...]] = (
    vercel.DIALECT,
    vercel_v7.DIALECT,
    pydantic_ai.DIALECT,
    openai_agents.DIALECT,
    logfire.DIALECT,
    langfuse.DIALECT,
    langsmith.DIALECT,
    adk.DIALECT,
    strands.DIALECT,
    autogen.DIALECT,
    crewai.DIALECT,
    semantic_kernel.DIALECT,
    agent_framework.DIALECT,
    mlflow.DIALECT,
    koog.DIALECT,
    any_agent.DIALECT,
    genkit.DIALECT,
    gemini_cli.DIALECT,
    codex.DIALECT,
    litellm.DIALECT,
    openlit.DIALECT,
    openinference.DIALECT,
    openllmetry.DIALECT,
    genai.DIALECT,
    agentcore.DIALECT,
)
"""Those that are built in. Of two that know a mark the first reads the span, so those that are surest of their own come first."""

BUILT_IN: Final = Reader(DIALECTS)
read: Final = BUILT_IN.read
