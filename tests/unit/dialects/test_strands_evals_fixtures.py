"""Captured traces of many frameworks, read by hand. Most have no root, and those from AgentCore carry HTTP spans in between."""

import pytest
from recordings import CORPORA, dictionary_spans, runs_of

from pipeline.model.run import Ended, Run
from pipeline.scorers.calls import NOT_EXECUTED

FIXTURES = CORPORA / "strands-evals-fixtures"


def run_of(name: str) -> Run:
    (run,) = runs_of(dictionary_spans(FIXTURES / f"{name}_spans.json"))
    return run


def called(run: Run) -> list[tuple[str, object, str | None]]:
    return [(call.name, call.arguments, call.error) for call in run.tool_calls]


def test_conventions_with_messages_in_span_events() -> None:
    run = run_of("otel_genai_convention")
    assert run.place.cohort.agent == "WeatherAssistant"
    assert called(run) == [("get_weather", {"location": "Paris"}, None), ("get_weather", {"location": "London"}, "TimeoutError")]
    assert [call.result for call in run.tool_calls] == ["rainy, 57°F", "Error: TimeoutError"]
    assert run.answer is not None
    assert run.answer.startswith("The weather in Paris is rainy at 57°F.")
    assert (run.usage.input, run.usage.output) == (200, 60)
    assert [tool.name for tool in run.tools] == ["get_weather"]


def test_openllmetry_of_openai_agents_with_specialists_beside_their_caller() -> None:
    run = run_of("openai_agents_genai_live")
    assert run.place.cohort.agent == "coordinator"
    assert run.agents == ("research_specialist", "math_specialist")
    assert called(run) == [
        ("ask_research_specialist", {"query": "current stock price of AMZN"}, None),
        ("lookup_stock_price", {"ticker": "AMZN"}, None),
        ("ask_math_specialist", {"query": "240.98 multiplied by 1000"}, None),
        ("multiply_numbers", {"a": 240, "b": 1000}, None),
        ("multiply_numbers", {"a": 0, "b": 1000}, None),
    ]
    assert run.answer == ("The current stock price of Amazon (AMZN) is $240.98. Therefore, 1,000 shares would be worth $240,980.")
    assert run.request.startswith("Look up the stock price for AMZN")
    assert run.system.startswith("You are a coordinator agent.")
    assert run.dialects == ("genai", "openllmetry")
    assert run.model_calls == 8


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("openai_agents_openinference_adot", "The product of \\(42 \\times 7\\) is \\(294\\)."),
        ("openai_agents_genai_adot", "The product of 42 and 7 is 294."),
    ],
)
def test_two_hand_overs_asked_for_and_one_made(name: str, answer: str) -> None:
    run = run_of(name)
    assert run.place.cohort.agent == "coordinator"
    assert run.agents == ("math_specialist",)
    assert called(run) == [("transfer_to_research_specialist", {}, NOT_EXECUTED), ("multiply_numbers", {"a": 42, "b": 7}, None)]
    assert run.tool_calls[1].result == "294.0"
    assert run.answer is not None
    assert run.answer.startswith(answer)
    assert (run.ended, run.model_calls, run.usage.input) == (Ended.ANSWER, 3, 692)
    assert {"handoff", "unrecognised"} <= set(run.flags)


def test_an_agent_used_as_a_tool_answers_its_caller_and_not_the_user() -> None:
    run = run_of("openai_agents_openinference_live")
    assert run.place.cohort.agent == "coordinator"
    assert run.agents == ("math_specialist",)
    assert [call.name for call in run.tool_calls] == [
        "ask_math_specialist",
        "multiply_numbers",
        "divide_numbers",
        "divide_numbers",
    ]
    assert run.answer == "The result of \\( 42 \\) multiplied by \\( 17 \\), then divided by \\( 3 \\), is **238**."
    assert (run.model_calls, run.usage.input, run.usage.output) == (5, 1228, 194)


@pytest.mark.parametrize("name", ["claude_live", "claude_adot"])
def test_an_agent_without_model_spans_lists_its_calls_itself(name: str) -> None:
    run = run_of(name)
    assert run.agents == ("Agent",)
    assert {call.name for call in run.tool_calls} == {"Agent", "Bash"}
    assert all(call.error is None and call.id and call.result for call in run.tool_calls)
    assert run.model_calls == 0
    assert run.usage.output in (850, 767)
    assert run.answer is not None
    assert ("17°F" in run.answer) or ("473.15" in run.answer)


def test_cached_tokens_that_a_provider_counts_apart_are_input_too() -> None:
    usage = run_of("claude_adot").usage
    assert (usage.input, usage.cached) == (4 + 29447 + 2861, 29447)


def test_a_code_agents_calls_are_its_tool_spans_and_its_answer_is_its_own() -> None:
    run = run_of("smolagents_live")
    assert run.place.cohort.agent == "CodeAgent"
    assert called(run) == [("web_search", {"query": "population of Tokyo"}, None)]
    assert run.answer is not None
    assert run.answer.startswith("The population of Tokyo is approximately 14 million")
    assert (run.usage.input, run.usage.output) == (6256, 163)


def test_langgraph_with_a_tool_that_its_tracer_calls_an_agent() -> None:
    run = run_of("openinference_live")
    assert run.agents == ()
    assert called(run) == [
        ("route_to_agent", {"agent_name": "research_agent"}, None),
        ("get_weather", {"city": "Taipei"}, NOT_EXECUTED),
        ("finish", {"answer": "Taipei is warmer"}, None),
    ]
    assert run.answer == "Taipei is warmer than Seattle overall."


def test_spans_whose_content_is_in_log_records_make_no_run() -> None:
    assert runs_of(dictionary_spans(FIXTURES / "openinference_adot_spans.json")) == []


# Dialects of later releases are read as far as the GenAI conventions go.


def test_pydantic_ai() -> None:
    run = run_of("pydantic_ai_live")
    assert called(run) == [("get_weather", {"city": "Seattle"}, None)]
    assert run.answer == "The current weather in Seattle is 62°F and cloudy with light rain. Pretty typical Seattle weather!"
    assert (run.usage.input, run.usage.output) == (1251, 78)


def test_adk_counts_a_model_call_once_though_two_spans_tell_of_it() -> None:
    run = run_of("adk_live")
    assert run.place.cohort.agent == "math_agent"
    assert called(run) == [("calculator", {"expression": "15 * 37"}, None)]
    assert (run.model_calls, run.usage.input, run.usage.output, run.usage.reasoning) == (2, 379, 84, 52)


def test_autogen_makes_its_agent_in_a_trace_that_is_no_run() -> None:
    run = run_of("autogen_live")
    assert run.place.cohort.agent == "math_assistant"
    assert called(run) == [("calculate", None, None)]
    assert "no_content" in run.flags
