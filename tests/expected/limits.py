"""What a trace of each framework cannot show of the truth, and why: found by reading the traces and the notes of those who recorded them."""

import json
from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any, Final, NamedTuple

Run = dict[str, Any]
"""An expected run, as the expected files write it."""
Show = Callable[[Run], Run]


class Limit(NamedTuple):
    """One thing that the traces of some files do not show, and what they show in its place."""

    files: str
    """``framework/scenario``, with wildcards."""
    show: Show
    why: str
    but: str = ""
    """Files of these that do show it."""

    def of(self, file: str) -> bool:
        """Whether it is a limit of the file."""
        return fnmatch(file, self.files) and not fnmatch(file, self.but)


def _calls(change: Show) -> Show:
    return lambda run: run | {"calls": [change(call) for call in run["calls"]]}


def _tokens(**a_call: int | None) -> Show:
    """Tokens of each model call as the trace has them; None where it has none."""

    def show(run: Run) -> Run:
        tokens = run["tokens"] | {name: count and count * run["model_calls"] for name, count in a_call.items()}
        return run | {"tokens": {name: count for name, count in tokens.items() if count is not None}}

    return show


def _no_content(run: Run) -> Run:
    """Names and tokens stay; nobody can see that the run answered."""
    return run | {
        "calls": [{"name": call["name"]} for call in run["calls"]],
        "answer": None,
        "request": "",
        "ended": "silence",
        "no_content": True,
    }


def _failed(error: str) -> Show:
    return _calls(lambda call: call | {"error": error} if call.get("error") else call)


def _typed(error_type: str) -> Show:
    """The exception's words are there, under another type."""
    return _calls(
        lambda call: call | {"error": f"{error_type}: {call['error'].partition(': ')[2]}"} if call.get("error") else call
    )


def _unwrapped(call: Run) -> Run:
    """``{"error": …}`` without the object around it."""
    told = json.loads(call["result"]) if call.get("error") and call["result"] else {}
    return call | {"result": told["error"]} if "error" in told else call


_VALIDATION: Final = (
    "1 validation error for {}\namount\n  Input should be a valid number, unable to parse string as a number"
    " [type=float_parsing, input_value='lots', input_type=str]\n"
    "    For further information visit https://errors.pydantic.dev/2.14/v/float_parsing"
)
_REDACTED: Final = (
    "Error running tool (non-fatal): {{'tool_name': '{}', 'error': 'Tool execution failed. Error details are redacted.'}}"
)
_NEVER_ENTERED: Final = (
    "a failed tool span exists although the function was never entered, and nothing tells it from one that was"
)


def _ended(error: str | None) -> Show:
    """The run's error in other words; None: whatever they are."""
    return lambda run: run | {"error": error}


_ONLY_ASKED: Final = "calls are in messages and nowhere else, and those are hidden"
_TWO_COUNTS: Final = "spans count input and output tokens alone; more is at most inside the text of a response"

LIMITS: Final = (
    Limit("*/*_nocontent", _no_content, "the sender hides inputs and outputs"),
    Limit("openai-agents/*_nosensitive", _no_content, "the sender leaves sensitive data out"),
    Limit("openai-openllmetry/*_nocontent", lambda run: run | {"calls": []}, _ONLY_ASKED),
    Limit("openai-v2/*_nocontent", lambda run: run | {"calls": []}, _ONLY_ASKED),
    Limit("adk/*", _tokens(output=35), "ADK adds the reasoning tokens again: 35 for 30"),
    Limit(
        "langchain-openllmetry/*",
        _tokens(reasoning=None),
        "spans count no reasoning tokens; they are at most inside the text of a response",
    ),
    Limit(
        "strands/*", _tokens(reasoning=None), "spans count no reasoning tokens; they are at most inside the text of a response"
    ),
    Limit("openai-openllmetry/*_stream", _tokens(reasoning=None), "spans of a stream count no reasoning tokens"),
    Limit("openai-v2/*", _tokens(cached=None, reasoning=None), _TWO_COUNTS),
    Limit("smolagents/*", _tokens(cached=None, reasoning=None), _TWO_COUNTS),
    Limit("openai-agents/*", _tokens(cached=None, reasoning=None), _TWO_COUNTS, but="*/*_responses"),
    Limit("adk/*_handled", _typed("TOOL_ERROR"), "the exception was handled; its type is not in the trace"),
    Limit("pydantic-ai/*_modelretry", _typed("ToolRetryError"), "the tool raised pydantic-ai's own exception with these words"),
    Limit("pydantic-ai/*", _calls(_unwrapped), "the trace has the words alone, the model was told them as an object"),
    Limit("openai-agents/tool_error_*", _failed(_REDACTED.format("lookup_order")), "the SDK redacts what a tool raised"),
    Limit("openai-agents/bad_arguments", _failed(_REDACTED.format("issue_refund")), _NEVER_ENTERED),
    Limit("langgraph/bad_arguments", _failed("ValidationError: " + _VALIDATION.format("issue_refund")), _NEVER_ENTERED),
    Limit("langchain-openllmetry/bad_*", _failed("ValidationError: " + _VALIDATION.format("issue_refund")), _NEVER_ENTERED),
    Limit(
        "strands/bad_arguments",
        _failed("ValueError: Validation failed for input parameters: " + _VALIDATION.format("Issue_refundTool")),
        _NEVER_ENTERED,
    ),
    Limit(
        "openai-agents/unknown_tool",
        _ended("Tool not found: {'tool_name': 'delete_customer'}"),
        "the exception is not in the trace",
    ),
    Limit("openai-agents/loops_max_turns", _ended("Max turns exceeded: {'max_turns': 3}"), "the exception is not in the trace"),
    Limit("smolagents/*_stuck_*", _ended(None), "reaching the step limit leaves no words"),
)

# What truth does not say, and the traces and the notes of those who recorded them do.

BARE_LOOP: Final = (
    "a bare loop: each model call is a trace of its own, without an agent's name, and nobody sees what was executed"
)
SERVICE: Final = "support-desk"
"""Name of the service, which is the agent's where there is no other."""
_RETURNING: Final = (
    "*/agent_as_tool",
    "langchain-openllmetry/handoff",
    "pydantic-ai/handoff",
    "smolagents/handoff",
    "vercel-ai-sdk-6/handoff",
)
_CONVERSATIONS: Final = {
    "pydantic-ai/*": "one",
    "openai-agents/session": "",
    "openai-openllmetry/*": "",
    "openai-v2/*": "",
    "adk/*": "thread-1",
    "*/session": "thread-1",
    "openai-agents/session_using": "thread-1",
}
_SCRIPTS: Final = {
    "*/session*": "refund_ok",
    "*/agent_as_tool": "agent_tool",
    "pydantic-ai/handoff": "agent_tool",
    "smolagents/handoff": "agent_tool",
    "strands/handoff": "agent_tool",
    "smolagents/tool_error_stuck_*": "tool_error_gives_up",
} | {
    f"*/{name}*": name
    for name in (
        "refund_ok",
        "tool_error_recovers",
        "tool_error_gives_up",
        "loops",
        "parallel_calls",
        "no_tools",
        "unknown_tool",
        "bad_arguments",
        "handoff",
        "pingpong",
    )
}

_AT_A_LIMIT: Final = (
    "adk/pingpong",
    "langgraph/loops_recursion_limit",
    "openai-agents/loops_max_turns",
    "smolagents/*_stuck_max_steps",
)


def is_bare(file: str) -> bool:
    """Whether a file is of a loop without spans of its own, or of the user's, around its model calls."""
    return fnmatch(file, "openai-openllmetry/*") or (fnmatch(file, "openai-v2/*") and not fnmatch(file, "*_rootspan"))


def ended(file: str, truth: str) -> str:
    """How a run ended: truth says only that it was an error where a framework ended it after so many rounds."""
    return "limit" if any(fnmatch(file, one) for one in _AT_A_LIMIT) else truth


def returns(file: str) -> bool:
    """Whether truth's ``handoff`` is a call that returns to its caller: a tool call like any other. Elsewhere control goes over for good."""
    return any(fnmatch(file, one) for one in _RETURNING)


def sub_agents(file: str, handoff: list[Any]) -> list[str]:
    """The other agents; in some frameworks names must be identifiers."""
    return ["refunds_desk" if file.startswith(("adk/", "smolagents/")) else "refunds-desk"] if handoff else []


def told_by_delegate(file: str) -> str | None:
    """What a delegation returned where truth has not kept it: the managed agent's answer, which is in its own spans."""
    return "Refunded 42.50 USD for A-1001." if file == "smolagents/handoff" else None


def conversation(file: str) -> str:
    """The conversation that spans name; ``one`` is an id made up by the framework, the same for all runs of a file."""
    return next((name for files, name in _CONVERSATIONS.items() if fnmatch(file, files)), "")


def request(file: str, turn: int) -> str:
    """What the user said. Which script a scenario plays is in its first words."""
    script = next(name for files, name in _SCRIPTS.items() if fnmatch(file, files))
    return "Was it really refunded?" if turn else f"[scenario:{script}] Please help with my order."
