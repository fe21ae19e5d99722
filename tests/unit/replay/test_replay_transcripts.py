import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collectors.replay import requests_of
from collectors.replay.transcript import BASE_NS
from collectors.replay.wire import spans_in
from pipeline.model.time import SECOND

DEMO = Path(__file__).parents[3] / "pipeline" / "apps" / "demo" / "traces"
TAU = DEMO / "tau-bench" / "gpt-4o-airline.sample.jsonl"
DOJO = DEMO / "agentdojo" / "runs.sample.jsonl"


def documents(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def tau(task: int, trial: int) -> dict[str, Any]:
    return next(document for document in documents(TAU) if (document["task_id"], document["trial"]) == (task, trial))


def dojo(part: str) -> dict[str, Any]:
    return next(document for document in documents(DOJO) if part in document["path"])


def converted(tmp_path: Path, document: dict[str, Any], name: str = "gpt-4o-airline.json") -> list[Span]:
    path = tmp_path / name
    path.write_text(json.dumps(document))
    return [span for request in requests_of(path) for span in spans_in(request)]


def attributes(span: Span) -> dict[str, Any]:
    return {item.key: getattr(item.value, item.value.WhichOneof("value") or "string_value") for item in span.attributes}


def below(spans: list[Span], operation: str) -> list[Span]:
    return [span for span in spans if attributes(span)["gen_ai.operation.name"] == operation]


@pytest.mark.parametrize("path", [TAU, DOJO])
def test_a_run_is_one_agent_span_with_a_model_call_per_assistant_message_and_a_tool_span_per_tool_message(
    path: Path, tmp_path: Path
) -> None:
    for number, document in enumerate(documents(path)):
        spans = converted(tmp_path, document, f"{number}.json")
        roles = [message["role"] for message in document.get("traj") or document["messages"]]
        (agent,) = below(spans, "invoke_agent")
        assert not agent.parent_span_id
        assert {span.trace_id for span in spans} == {agent.trace_id}
        assert len(below(spans, "chat")) == roles.count("assistant")
        assert len(below(spans, "execute_tool")) == roles.count("tool")
        assert all(span.parent_span_id == agent.span_id for span in spans if span is not agent)
        assert {attributes(span)["tracegrade.converted_from"] for span in spans} == {path.parent.name}
        assert all(
            agent.start_time_unix_nano <= s.start_time_unix_nano <= s.end_time_unix_nano <= agent.end_time_unix_nano
            for s in spans
        )
        steps = [span for span in spans if span is not agent]
        assert all(
            later.start_time_unix_nano - earlier.start_time_unix_nano >= SECOND for earlier, later in itertools.pairwise(steps)
        )
        assert agent.start_time_unix_nano == BASE_NS


def test_a_tau_bench_run_reads_as_the_conventions_say(tmp_path: Path) -> None:
    document = tau(11, 1)
    spans = converted(tmp_path, document)
    agent = spans[0]
    said = attributes(agent)
    assert agent.name == "invoke_agent tau-airline"
    assert said["gen_ai.agent.name"] == "tau-airline"
    assert json.loads(said["gen_ai.system_instructions"])[0]["content"].startswith("# Airline Agent Policy")
    assert json.loads(said["gen_ai.output.messages"])[0]["parts"][0]["content"] == document["traj"][-2]["content"]
    chats = below(spans, "chat")
    assert chats[0].name == "chat gpt-4o"
    assert chats[0].kind == Span.SPAN_KIND_CLIENT
    assert attributes(chats[0])["gen_ai.provider.name"] == "openai"
    first = json.loads(attributes(chats[0])["gen_ai.input.messages"])
    assert [message["role"] for message in first] == ["system", "user"]
    assert [message["role"] for message in json.loads(attributes(chats[1])["gen_ai.input.messages"])] == ["user"]
    call = below(spans, "execute_tool")[0]
    entry = next(message for message in document["traj"] if message["role"] == "tool")
    asked = next(message for message in document["traj"] if message.get("tool_calls"))["tool_calls"][0]
    assert call.name == f"execute_tool {entry['name']}"
    assert attributes(call)["gen_ai.tool.call.id"] == entry["tool_call_id"]
    assert attributes(call)["gen_ai.tool.call.arguments"] == asked["function"]["arguments"]
    assert attributes(call)["gen_ai.tool.call.result"] == entry["content"]
    assert call.status.code == Span().status.code


def test_the_messages_of_the_model_calls_add_up_to_the_conversation(tmp_path: Path) -> None:
    document = tau(11, 1)
    heard: list[str] = []
    for chat in below(converted(tmp_path, document), "chat"):
        heard += [message["role"] for message in json.loads(attributes(chat)["gen_ai.input.messages"])]
        heard += [message["role"] for message in json.loads(attributes(chat)["gen_ai.output.messages"])]
    assert heard == [message["role"] for message in document["traj"][:-1]]


def test_a_failed_tool_of_tau_bench_is_an_error(tmp_path: Path) -> None:
    failed = [span for span in converted(tmp_path, tau(11, 1)) if span.status.code == 2]
    (call,) = failed
    assert call.name == "execute_tool book_reservation"
    assert call.status.message == "Error: payment amount does not add up, total price is 375, but paid 299"
    assert attributes(call)["error.type"] == "Error"


def test_a_failed_tool_of_agentdojo_is_an_error_with_its_class_and_what_the_model_was_told(tmp_path: Path) -> None:
    failed = [span for span in converted(tmp_path, dojo("user_task_18")) if span.status.code == 2]
    (call,) = failed
    assert attributes(call)["error.type"] == "ValueError"
    assert call.status.message == "ValueError: No emails found. Try with a different query."
    assert attributes(call)["gen_ai.tool.call.result"] == call.status.message
    assert json.loads(attributes(call)["gen_ai.tool.call.arguments"]) == {"query": "hiking trip Mark"}


def test_agentdojo_names_agent_and_model_and_asks_for_tools_in_parallel(tmp_path: Path) -> None:
    spans = converted(tmp_path, dojo("slack/user_task_13"))
    assert attributes(spans[0])["gen_ai.agent.name"] == "agentdojo-slack"
    chat = below(spans, "chat")
    assert chat[0].name == "chat gpt-4o-2024-05-13"
    parts = [part for span in chat for part in json.loads(attributes(span)["gen_ai.output.messages"])[0]["parts"]]
    asked = [part["id"] for part in parts if part["type"] == "tool_call"]
    assert asked == [attributes(span)["gen_ai.tool.call.id"] for span in below(spans, "execute_tool")]


def test_labels_are_on_the_agent_span_only_and_a_run_without_attack_says_nothing_of_security(tmp_path: Path) -> None:
    benign = converted(tmp_path, dojo("slack/user_task_13"))
    assert attributes(benign[0])["tracegrade.label.utility"] is True
    assert "tracegrade.label.security" not in attributes(benign[0])
    attacked = converted(tmp_path, dojo("travel/user_task_0"))
    assert attributes(attacked[0])["tracegrade.label.security"] is True
    assert attributes(attacked[0])["tracegrade.label.attack_type"] == "important_instructions"
    rewarded = converted(tmp_path, tau(1, 1))
    assert attributes(rewarded[0])["tracegrade.label.reward"] == 1.0
    assert not [key for span in (*benign[1:], *attacked[1:], *rewarded[1:]) for key in attributes(span) if ".label." in key]


def test_editing_a_tool_result_changes_that_result_and_no_id(tmp_path: Path) -> None:
    document = tau(11, 1)
    before = converted(tmp_path, document)
    next(message for message in document["traj"] if message["role"] == "tool")["content"] = "edited"
    after = converted(tmp_path, document)
    assert [(span.trace_id, span.span_id) for span in before] == [(span.trace_id, span.span_id) for span in after]
    changed = [span for span, other in zip(after, before, strict=True) if span != other]
    assert [attributes(span)["gen_ai.operation.name"] for span in changed] == ["execute_tool", "chat"]
    assert attributes(changed[0])["gen_ai.tool.call.result"] == "edited"


def test_every_run_has_its_own_trace_whatever_its_file_is_called(tmp_path: Path) -> None:
    runs = [
        converted(tmp_path, document, "gpt-4o-airline.json")[0].trace_id for path in (TAU, DOJO) for document in documents(path)
    ]
    assert len(set(runs)) == len(runs) == 11
    renamed = [converted(tmp_path, document, "renamed.json")[0].trace_id for path in (TAU, DOJO) for document in documents(path)]
    assert renamed == runs


def test_the_same_trial_by_another_model_is_another_run(tmp_path: Path) -> None:
    document = tau(1, 1)
    one = converted(tmp_path, document)[0].trace_id
    next(message for message in document["traj"] if message["role"] == "assistant")["content"] = "Bonjour!"
    assert converted(tmp_path, document, "claude-airline.json")[0].trace_id != one


def test_a_model_that_is_not_known_is_left_out(tmp_path: Path) -> None:
    chat = below(converted(tmp_path, tau(1, 1), "renamed.json"), "chat")[0]
    assert chat.name == "chat"
    assert "gen_ai.request.model" not in attributes(chat)


def test_arguments_that_are_no_json_stay_as_they_are_and_a_run_that_broke_off_is_an_error(tmp_path: Path) -> None:
    document = tau(11, 1)
    asked = next(message for message in document["traj"] if message.get("tool_calls"))["tool_calls"][0]
    asked["function"]["arguments"] = '{"user_id": "mia'
    call = below(converted(tmp_path, document), "execute_tool")[0]
    assert attributes(call)["gen_ai.tool.call.arguments"] == '{"user_id": "mia'
    broken = {**dojo("slack/user_task_13"), "error": "ContextWindowError: too long"}
    agent = converted(tmp_path, broken)[0]
    assert (agent.status.code, attributes(agent)["error.type"]) == (2, "ContextWindowError")
    nameless = converted(tmp_path, {**broken, "error": "gave up"})[0]
    assert attributes(nameless)["error.type"] == "_OTHER"


def test_a_run_that_ends_with_a_tool_call_has_no_answer(tmp_path: Path) -> None:
    document = tau(11, 1)
    last = max(number for number, message in enumerate(document["traj"]) if message["role"] == "tool")
    document["traj"] = document["traj"][: last + 1]
    assert "gen_ai.output.messages" not in attributes(converted(tmp_path, document)[0])
