"""What the model says in each scenario, and which part of a page is followed for it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from quickstarts.pages import NAMES, Page, page
from quickstarts.scripted_model import Ask, Turn

TOLD: Final = "Tool errors that the model is told"
STREAMING: Final = "Streaming"
HANDING_OVER: Final = "Handing over"
NO_CONTENT: Final = "no_content"
LOOKED_UP: Final = Ask("lookup_order", {"order_id": "A-1001"})
ALSO_LOOKED_UP: Final = Ask("lookup_order", {"order_id": "A-1002"})
MISSED: Final = Ask("lookup_order", {"order_id": "A-404"})
REFUNDED: Final = Ask("issue_refund", {"order_id": "A-1001", "amount": 42.5})
DELETED: Final = Ask("delete_customer", {"customer": "C-7"})
DONE: Final = "I refunded 42.50 USD for order A-1001."


class Scenario(NamedTuple):
    """A question, and what the model says, turn by turn."""

    question: str
    turns: Sequence[Turn]
    part: str = ""
    """The heading of the page's part that is followed; empty is the program that the page begins with."""
    exports: Mapping[str, str | None] = {}
    """What is set in place of what the page sets; None is not set."""


SUCCESS: Final = Scenario("Please refund order A-1001.", ((LOOKED_UP,), (REFUNDED,), DONE))
RECOVERS: Final = Scenario(
    "What did orders A-404 and A-1001 cost?", ((MISSED,), (LOOKED_UP,), "There is no A-404. A-1001 cost 42.50 USD.")
)
GIVES_UP: Final = Scenario("Where is order A-404?", ((MISSED,), "Your order A-404 was delivered yesterday."))
LOOP: Final = Scenario("What did order A-1001 cost?", ((LOOKED_UP,), (LOOKED_UP,), (LOOKED_UP,), (LOOKED_UP,), "42.50 USD."))
PARALLEL: Final = Scenario(
    "What did orders A-1001 and A-1002 cost?", ((LOOKED_UP, ALSO_LOOKED_UP), "They cost 42.50 and 199.00 USD.")
)
UNKNOWN: Final = Scenario("Delete my account.", ((DELETED,), "I cannot delete accounts."))


class Traits(NamedTuple):
    """What a framework does its own way, as its page says."""

    agent: str = "support-agent"
    desk: str = "refunds-desk"
    """The agent that is handed over to."""
    hand_over: Sequence[Turn] = ()
    """What the model says where the page has a part on handing over, between looking up and refunding."""
    hand_back: Sequence[Turn] = ()
    """What it says between refunding and the answer: an agent that is called as a tool answers to its caller, and the hand-over is a call."""
    unknown_tool_ends: bool = False
    """A call of a tool that is not there ends the run."""
    tool_error_ends: bool = True
    """Where the page has a part on telling the model of errors: without it, one ends the run."""
    error_text: bool = True
    """Also without it the trace has the text of a tool's error."""
    reasoning_twice: bool = False
    """The trace has reasoning tokens once as part of the output, and once more added to it."""
    no_content: Mapping[str, str | None] = {}
    """Settings with which content is not recorded, as far as it is a matter of settings."""


def _asked(tool: str, **arguments: str) -> tuple[Turn, ...]:
    return ((Ask(tool, arguments),),)


_HIDDEN: Final = {"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "true"}
_UNTRACED: Final = {"TRACELOOP_TRACE_CONTENT": "false"}
_CAPTURED: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_TO_THE_DESK: Final = "Refund order A-1001."
TRAITS: Final = {
    "agent-framework": Traits(desk="refunds_desk", hand_over=_asked("refunds_desk", task=_TO_THE_DESK), hand_back=("Refunded.",)),
    "google-adk": Traits(
        agent="support_agent",
        desk="refunds_desk",
        hand_over=_asked("transfer_to_agent", agent_name="refunds_desk"),
        reasoning_twice=True,
        no_content={_CAPTURED: None},
    ),
    "langchain-openllmetry": Traits(
        hand_over=_asked("refunds_desk", request=_TO_THE_DESK), hand_back=("Refunded.",), no_content=_UNTRACED
    ),
    "langgraph": Traits(hand_over=_asked("transfer_to_refunds_desk"), no_content=_HIDDEN),
    "openai-agents": Traits(
        desk="refunds_desk",
        hand_over=_asked("transfer_to_refunds_desk"),
        unknown_tool_ends=True,
        tool_error_ends=False,
        error_text=False,
        no_content=_HIDDEN,
    ),
    "openai-client": Traits(no_content={_CAPTURED: None}),
    "openai-openllmetry": Traits(no_content=_UNTRACED),
    "pydantic-ai": Traits(hand_over=_asked("refunds_desk", request=_TO_THE_DESK), hand_back=("Refunded.",)),
    "smolagents": Traits(
        agent="support_agent",
        desk="refunds_desk",
        hand_over=_asked("refunds_desk", task=_TO_THE_DESK),
        hand_back=("Refunded.",),
        no_content=_HIDDEN,
    ),
    "strands": Traits(
        hand_over=(*_asked("handoff_to_agent", agent_name="refunds-desk", message=_TO_THE_DESK), "I handed you over."),
        no_content={"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_unredacted_attributes="},
    ),
    "vercel-ai-sdk": Traits(hand_over=_asked("refunds_desk", request=_TO_THE_DESK), hand_back=("Refunded.",)),
}


def _scenarios(told_by: Page, traits: Traits) -> Iterator[tuple[str, Scenario]]:
    told = TOLD if TOLD in told_by.programs else ""
    yield "success", SUCCESS
    yield "tool_error_recovers", RECOVERS._replace(part=told)
    yield "tool_error_gives_up", GIVES_UP._replace(part=told)
    if told:
        yield "tool_error_by_default", GIVES_UP._replace(turns=GIVES_UP.turns[:1]) if traits.tool_error_ends else GIVES_UP
    yield "loop", LOOP
    yield "parallel_calls", PARALLEL
    yield "unknown_tool", UNKNOWN._replace(turns=UNKNOWN.turns[:1]) if traits.unknown_tool_ends else UNKNOWN
    if traits.no_content:
        yield NO_CONTENT, SUCCESS._replace(exports=traits.no_content)
    if STREAMING in told_by.programs:
        yield "streaming", SUCCESS._replace(part=STREAMING)
    if HANDING_OVER in told_by.programs:
        turns = ((LOOKED_UP,), *traits.hand_over, (REFUNDED,), *traits.hand_back, DONE)
        yield "hand_off", Scenario(SUCCESS.question, turns, HANDING_OVER)


SCENARIOS: Final = {f"{name}.{scenario}": script for name in NAMES for scenario, script in _scenarios(page(name), TRAITS[name])}
"""What is played, by page and scenario."""
