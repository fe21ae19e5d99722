"""Traps 11 to 16: what is said of a run as a whole, and by whom."""

import json
from typing import Any

from builders import a_log_record

from pipeline.model.run import Ended
from traps import AGENT, CHAT, TOOL, Trap, alone, asks, calls, recorded, said, sent, span

EARLIER = [
    said("user", "Refund order 7."),
    asks("c0"),
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c0", "response": "done"}]},
    said("assistant", "It is refunded."),
]
NOW = [*EARLIER, said("user", "Was it really?")]
ANSWER = {"gen_ai.output.messages": [said("assistant", "Yes.")]}


def history(variant: str, stands: str, attributes: dict[str, Any], **fields: Any) -> Trap:
    """A turn that is given what came before it."""
    return Trap(
        12,
        variant,
        stands,
        alone(span(1, 0, AGENT, lasts=9), span(2, 1, attributes, **fields)),
        lambda runs: (runs[0].request, calls(runs), runs[0].answer),
        ("Was it really?", [], "Yes."),
    )


def session(variant: str, stands: str, name: str) -> Trap:
    """A conversation on a span below the agent's, and on no other."""
    return Trap(
        13,
        variant,
        stands,
        sent(span(2, 1, CHAT | ANSWER | {name: "s-1"})),
        lambda runs: [run.conversation_id for run in runs],
        ["s-1"],
    )


def cohort(variant: str, stands: str, attributes: dict[str, Any], resource: dict[str, Any], wanted: tuple[str, str]) -> Trap:
    return Trap(
        14,
        variant,
        stands,
        alone(span(1, 0, AGENT | attributes, resource=resource), span(2, 1, CHAT | ANSWER, resource=resource, at=-1)),
        lambda runs: (runs[0].place.cohort.version, runs[0].place.cohort.environment),
        wanted,
    )


def grader(variant: str, stands: str, attributes: dict[str, Any], **fields: Any) -> Trap:
    """A root span of an evaluation, with the call of its judge below: no run."""
    judge = span(2, 1, CHAT | ANSWER)
    return Trap(15, variant, stands, alone(span(1, 0, attributes, lasts=9, **fields), judge), len, 0)


def provider(stands: str, attributes: dict[str, Any], wanted: str = "") -> Trap:
    return Trap(
        16,
        "a framework's name" if not wanted else "a provider's name",
        stands,
        sent(span(2, 1, CHAT | attributes)),
        lambda runs: [step.provider for step in runs[0].steps if step.model],
        [wanted],
    )


EVALUATION = {"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.label": "fail"}
TRAPS = [
    Trap(
        11,
        "status OK on the root of a run that raised",
        "live/openai-agents/loops_max_turns: Agent workflow OK, support-agent ERROR",
        recorded("live/openai-agents/loops_max_turns.jsonl"),
        lambda runs: (runs[0].ended, runs[0].error),
        (Ended.LIMIT, "Max turns exceeded: {'max_turns': 3}"),
    ),
    Trap(
        11,
        "status OK on the root, ERROR on the step that raised",
        "invoke_agent OK, chat ERROR",
        alone(
            span(1, 0, AGENT, lasts=9, status_code=1), span(2, 1, CHAT, status_code=2, status_message="RateLimitError: slow down")
        ),
        lambda runs: (runs[0].ended, runs[0].error),
        (Ended.ERROR, "RateLimitError: slow down"),
    ),
    Trap(
        11,
        "status OK on the root of a run that only a tool of failed",
        "invoke_agent OK, execute_tool ERROR, then an answer",
        alone(
            span(1, 0, AGENT, lasts=9, status_code=1),
            span(2, 1, TOOL, status_code=2, status_message="gone"),
            span(4, 1, CHAT | ANSWER),
        ),
        lambda runs: (runs[0].ended, runs[0].error),
        (Ended.ANSWER, None),
    ),
    history(
        "earlier turns in a call's messages",
        "gen_ai.input.messages = the whole conversation",
        CHAT | ANSWER | {"gen_ai.input.messages": NOW},
    ),
    history(
        "earlier turns in the old form",
        "gen_ai.prompt.0 … 4",
        {
            "llm.request.type": "chat",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "Refund order 7.",
            "gen_ai.prompt.1.role": "assistant",
            "gen_ai.prompt.1.tool_calls.0.id": "c0",
            "gen_ai.prompt.1.tool_calls.0.name": "lookup",
            "gen_ai.prompt.2.role": "tool",
            "gen_ai.prompt.2.content": "done",
            "gen_ai.prompt.2.tool_call_id": "c0",
            "gen_ai.prompt.3.role": "user",
            "gen_ai.prompt.3.content": "Was it really?",
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "Yes.",
        },
    ),
    Trap(
        12,
        "earlier turns on the agent alone (Pydantic AI)",
        "pydantic_ai.all_messages, new_message_index = 4",
        alone(
            span(
                1,
                0,
                AGENT
                | {
                    "pydantic_ai.all_messages": json.dumps([*NOW, asks("c1", {"id": 8}), said("assistant", "Yes.")]),
                    "pydantic_ai.new_message_index": 4,
                    "final_result": "Yes.",
                },
                scope_name="pydantic-ai",
            )
        ),
        lambda runs: (runs[0].request, calls(runs), runs[0].answer),
        ("Was it really?", [("lookup", {"id": 8})], "Yes."),
    ),
    *(
        Trap(
            12,
            f"the second turn of a session ({framework})",
            f"live/{framework}/session",
            recorded(f"live/{framework}/session.jsonl"),
            lambda runs: (runs[1].request, calls(runs[1:]), runs[1].model_calls),
            ("Was it really refunded?", [], 1),
        )
        for framework in ("strands", "adk", "pydantic-ai", "langgraph")
    ),
    session("a session on a child only", "session.id on the model call", "session.id"),
    session("a conversation on a child only", "gen_ai.conversation.id on the model call", "gen_ai.conversation.id"),
    session(
        "a thread on a child only", "traceloop.association.properties.thread_id", "traceloop.association.properties.thread_id"
    ),
    cohort(
        "the agent's own version",
        "gen_ai.agent.version = 3, service.version = 1.2",
        {"gen_ai.agent.version": "3"},
        {"service.version": "1.2"},
        ("3", "unknown"),
    ),
    cohort(
        "no version but the service's",
        "service.version, deployment.environment.name",
        {},
        {"service.version": "1.2", "deployment.environment.name": "prod"},
        ("1.2", "prod"),
    ),
    cohort("the environment's older name", "deployment.environment", {}, {"deployment.environment": "prod"}, ("unknown", "prod")),
    cohort("nothing", "no version, no environment", {}, {}, ("unknown", "unknown")),
    grader("an evaluator (OpenInference)", "openinference.span.kind = EVALUATOR", {"openinference.span.kind": "EVALUATOR"}),
    grader("an evaluation (Pydantic Evals)", "scope pydantic-evals", {"gen_ai.operation.name": "x"}, scope_name="pydantic-evals"),
    grader("a result of an evaluation", "gen_ai.evaluation.name", EVALUATION),
    grader(
        "a scorer (MLflow)", "mlflow.trace.sourceScorer", {"mlflow.spanType": '"CHAIN"', "mlflow.trace.sourceScorer": '"tone"'}
    ),
    grader("an evaluator (MLflow)", "mlflow.spanType = '\"EVALUATOR\"'", {"mlflow.spanType": '"EVALUATOR"'}),
    grader("an evaluator (Langfuse)", "langfuse.observation.type = evaluator", {"langfuse.observation.type": "evaluator"}),
    grader(
        "a judge of Langfuse's own",
        "langfuse.environment = langfuse-llm-as-a-judge",
        {"langfuse.observation.type": "span", "langfuse.environment": "langfuse-llm-as-a-judge"},
    ),
    grader(
        "an evaluator (Genkit)",
        "genkit:metadata:subtype = evaluator",
        {"genkit:type": "action", "genkit:metadata:subtype": "evaluator"},
    ),
    Trap(
        15,
        "an evaluator inside a run",
        "EVALUATOR span with a model call, below an agent",
        alone(
            span(1, 0, AGENT, lasts=99),
            span(2, 1, CHAT | ANSWER),
            span(5, 1, {"openinference.span.kind": "EVALUATOR"}),
            span(6, 5, CHAT | {"gen_ai.output.messages": [said("assistant", "score: 5")]}),
        ),
        lambda runs: (len(runs), runs[0].model_calls, runs[0].answer),
        (1, 1, "Yes."),
    ),
    Trap(
        15,
        "a result of an evaluation in a log record of a step",
        "event gen_ai.evaluation.result",
        alone(
            span(1, 0, AGENT, lasts=9),
            span(2, 1, CHAT | ANSWER),
            a_log_record(f"{2:016x}", event_name="gen_ai.evaluation.result", attributes=EVALUATION),
        ),
        lambda runs: (len(runs), [one.value for step in runs[0].steps for one in step.feedback]),
        (1, [-1.0]),
    ),
    *(
        provider(f"gen_ai.provider.name = {name}", {"gen_ai.provider.name": name})
        for name in ("strands-agents", "crewai", "langchain", "autogen", "microsoft.agent_framework", "gcp.vertex.agent")
    ),
    provider("gen_ai.system = strands-agents", {"gen_ai.system": "strands-agents"}),
    provider("llm.system = langchain", {"openinference.span.kind": "LLM", "llm.model_name": "m", "llm.system": "langchain"}),
    provider(
        "gen_ai.system = langchain, gen_ai.provider.name = openai",
        {"gen_ai.system": "langchain", "gen_ai.provider.name": "openai"},
        "openai",
    ),
]
