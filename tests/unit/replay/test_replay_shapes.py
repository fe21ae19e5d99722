import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from collectors.replay import read, requests_of
from collectors.replay.wire import SPANS_A_REQUEST, spans_in
from pipeline.errors import ConfigurationError

DATA = Path(__file__).parent / "data"
CORPORA = Path(__file__).parents[2] / "corpora"
DEMO = Path(__file__).parents[3] / "pipeline" / "apps" / "demo" / "traces"
FILES = {
    "OTLP/JSON": DEMO / "langgraph" / "refund_ok.jsonl",
    "Tempo": DATA / "agentevals" / "tempo_export_with_batches_trimmed.json",
    "span dictionaries": CORPORA / "strands-evals-fixtures" / "openinference_live_spans.json",
    "span dictionaries with events": CORPORA / "strands-evals-fixtures" / "otel_genai_convention_spans.json",
    "span dictionaries with log bodies": CORPORA / "strands-evals-fixtures" / "openinference_adot_spans.json",
    "any-agent dump": CORPORA / "any-agent" / "AGNO_trace.json",
    "Jaeger JSON": DATA / "agentevals" / "helm_trimmed.json",
    "Langfuse export": CORPORA / "langfuse-framework-traces" / "openai-agents-2025-09-30.json",
    "tau-bench": DEMO / "tau-bench" / "gpt-4o-airline.sample.jsonl",
    "agentdojo": DEMO / "agentdojo" / "runs.sample.jsonl",
}
PARENTS = {
    "OTLP/JSON": (1, 10, 0),
    "Tempo": (0, 0, 10),
    "span dictionaries": (1, 5, 0),
    "span dictionaries with events": (1, 4, 0),
    "span dictionaries with log bodies": (8, 0, 0),
    "any-agent dump": (1, 5, 0),
    "Jaeger JSON": (1, 11, 0),
    "Langfuse export": (1, 4, 0),
    "tau-bench": (5, 75, 0),
    "agentdojo": (6, 63, 0),
}
"""Roots, spans whose parent is in the file, spans whose parent is not (the Tempo file was cut)."""


def spans_of(path: Path) -> list[Span]:
    return [span for request in requests_of(path) for span in spans_in(request)]


def named(spans: list[Span], name: str) -> Span:
    return next(span for span in spans if span.name == name)


def plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "kvlist_value":
        return {item.key: plain(item.value) for item in value.kvlist_value.values}
    if kind == "array_value":
        return [plain(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None


def attributes(holder: Any) -> Mapping[str, Any]:
    return {item.key: plain(item.value) for item in holder.attributes}


def only(path: Path) -> ResourceSpans:
    (request,) = requests_of(path)
    (resource_spans,) = request.resource_spans
    return resource_spans


def written(tmp_path: Path, document: Any, name: str = "file.json") -> Path:
    path = tmp_path / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


@pytest.mark.parametrize("shape", FILES)
def test_every_shape_becomes_valid_otlp_whose_parents_resolve(shape: str) -> None:
    spans = spans_of(FILES[shape])
    assert all(len(span.trace_id) == 16 and any(span.trace_id) for span in spans)
    assert all(len(span.span_id) == 8 and any(span.span_id) for span in spans)
    assert all(len(span.parent_span_id) in (0, 8) for span in spans)
    assert all(0 < span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    known = {(span.trace_id, span.span_id) for span in spans}
    assert len(known) == len(spans)
    roots = sum(not span.parent_span_id for span in spans)
    resolved = sum((span.trace_id, span.parent_span_id) in known for span in spans)
    assert (roots, resolved, len(spans) - roots - resolved) == PARENTS[shape]


@pytest.mark.parametrize("path", FILES.values(), ids=FILES)
def test_a_file_is_read_alike_twice(path: Path) -> None:
    assert [r.SerializeToString(deterministic=True) for r in requests_of(path)] == [
        r.SerializeToString(deterministic=True) for r in requests_of(path)
    ]


def test_otlp_json_is_sent_as_it_was_received() -> None:
    path = FILES["OTLP/JSON"]
    line = json.loads(path.read_text().splitlines()[0])
    expected = line["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span = spans_of(path)[0]
    assert span.trace_id.hex() == expected["traceId"]
    assert span.span_id.hex() == expected["spanId"]
    assert span.parent_span_id.hex() == expected["parentSpanId"]
    assert span.start_time_unix_nano == int(expected["startTimeUnixNano"])
    assert span.flags == 256
    assert len(span.attributes) == len(expected["attributes"])
    assert not any(key.startswith("tracegrade.") for key in attributes(span))


def test_otlp_json_takes_what_files_in_the_wild_hold(tmp_path: Path) -> None:
    span = {
        "trace_id": "3q2+796tvu/erb7v3q2+7w==",
        "spanId": "chain-root",
        "parentSpanId": "12",
        "kind": "SPAN_KIND_CLIENT",
        "startTimeUnixNano": 1777555053780274700,
        "attributes": [
            {"key": "nested", "value": {"kvlistValue": {"values": [{"key": "n", "value": {"intValue": "9007199254740993"}}]}}},
            {"key": "not a number", "value": {"doubleValue": "NaN"}},
        ],
        "links": [{"traceId": "other trace", "spanId": "chain-root"}],
        "unheard of": 1,
    }
    path = written(tmp_path, {"resource_spans": [{"scope_spans": [{"spans": [span]}]}]})
    (found,) = spans_of(path)
    assert found.trace_id.hex() == "deadbeef" * 4
    assert found.parent_span_id.hex() == "000000000000000c"
    assert found.kind == 3
    assert found.start_time_unix_nano == 1777555053780274700
    assert attributes(found)["nested"] == {"n": 9007199254740993}
    assert attributes(found)["tracegrade.original_trace_id"] == "3q2+796tvu/erb7v3q2+7w=="
    assert attributes(found)["tracegrade.original_span_id"] == "chain-root"
    assert found.links[0].span_id == found.span_id


def test_a_span_without_ids_is_left_to_the_receiver_to_reject(tmp_path: Path) -> None:
    (found,) = spans_of(written(tmp_path, {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "nameless"}]}]}]}))
    assert found.trace_id == b""
    assert found.span_id == b""


def test_a_tempo_export_in_the_old_names_keeps_scopes_and_kinds() -> None:
    (request,) = requests_of(FILES["Tempo"])
    scopes = [scope_spans.scope.name for resource_spans in request.resource_spans for scope_spans in resource_spans.scope_spans]
    assert "opentelemetry.instrumentation.httpx" in scopes
    assert next(spans_in(request)).kind == Span.SPAN_KIND_SERVER
    assert any(span.events for span in spans_in(request))


def test_span_dictionaries_with_free_text_ids_keep_them_as_attributes() -> None:
    spans = spans_of(FILES["span dictionaries"])
    root = next(span for span in spans if not span.parent_span_id)
    assert attributes(root)["tracegrade.original_span_id"] == "chain-root"
    assert attributes(root)["tracegrade.original_trace_id"] == "live-trace-1"
    assert any(span.parent_span_id == root.span_id for span in spans)


def test_span_dictionaries_keep_status_words_and_nested_values_of_events() -> None:
    spans = spans_of(FILES["span dictionaries with events"])
    assert sorted(span.status.code for span in spans) == [1, 1, 1, 1, 2]
    (event,) = next(span for span in spans if span.events).events
    assert event.name == "gen_ai.client.inference.operation.details"
    assert event.time_unix_nano == 1700000001500000000
    assert attributes(event)["gen_ai.input.messages"][0]["parts"][0]["type"] == "text"


def test_the_body_of_a_log_record_joined_to_a_span_dictionary_becomes_an_attribute_of_its_event() -> None:
    (event, *_) = spans_of(FILES["span dictionaries with log bodies"])[0].events
    assert attributes(event)["body"]["input"]["messages"][0] == {"content": "What is the weather in Alaska?", "role": "user"}


def test_the_wrapper_and_single_lines_of_span_dictionaries_say_the_same_as_the_list(tmp_path: Path) -> None:
    listed = json.loads(FILES["span dictionaries"].read_text())
    lines = written(tmp_path, "\n".join(json.dumps(span) for span in listed), "lines.jsonl")
    wrapper = written(tmp_path, {"session_id": "s", "span_count": len(listed), "spans": listed})
    assert spans_of(lines) == spans_of(wrapper) == spans_of(FILES["span dictionaries"])


def test_any_agent_ids_are_decimal_numbers_kept_by_value() -> None:
    spans = spans_of(FILES["any-agent dump"])
    root = next(span for span in spans if not span.parent_span_id)
    assert int(root.trace_id.hex(), 16) == 39712373237291850001929057769826244787
    assert attributes(root)["tracegrade.original_span_id"] == str(int(root.span_id.hex(), 16))
    assert all(span.parent_span_id == root.span_id for span in spans if span is not root)
    call = named(spans, "execute_tool get_current_time")
    assert (call.kind, call.status.code) == (Span.SPAN_KIND_INTERNAL, 1)
    assert call.flags == 0x100
    assert attributes(only(FILES["any-agent dump"]).resource)["service.name"] == "unknown_service"


def test_jaeger_tags_become_what_they_were() -> None:
    spans = spans_of(FILES["Jaeger JSON"])
    failed = named(spans, "GET")
    assert (failed.kind, failed.status.code) == (Span.SPAN_KIND_CLIENT, 2)
    tool = named(spans, "execute_tool helm_list_releases")
    assert tool.kind == Span.SPAN_KIND_INTERNAL
    assert tool.end_time_unix_nano - tool.start_time_unix_nano > 1_000_000
    assert not {"span.kind", "otel.scope.name", "otel.status_code", "error"} & {key for span in spans for key in attributes(span)}
    assert tool.parent_span_id == next(span for span in spans if span.span_id.hex() == "e37fdd8f56146d31").span_id
    (event,) = next(span for span in spans if span.events).events
    assert event.name == "exception"
    assert attributes(event)["exception.type"] == "asyncio.exceptions.CancelledError"
    resource_spans = only(FILES["Jaeger JSON"])
    assert attributes(resource_spans.resource) == {"service.name": "helm_agent", "service.namespace": "kagent"}
    assert {scope_spans.scope.name for scope_spans in resource_spans.scope_spans} >= {"gcp.vertex.agent", "a2a-python-sdk"}


def test_jaeger_ids_without_leading_zeros_and_references_that_are_no_parent(tmp_path: Path) -> None:
    references = [
        {"refType": "FOLLOWS_FROM", "traceID": "abc", "spanID": "1"},
        {"refType": "CHILD_OF", "traceID": "fff", "spanID": "2"},
        {"refType": "CHILD_OF", "traceID": "abc", "spanID": "3"},
    ]
    span = {"traceID": "abc", "spanID": "def", "operationName": "o", "startTime": 5, "duration": 2, "references": references}
    (found,) = spans_of(written(tmp_path, {"data": [{"traceID": "abc", "spans": [span], "processes": {}}]}))
    assert found.trace_id.hex() == f"{0xABC:032x}"
    assert found.span_id.hex() == f"{0xDEF:016x}"
    assert found.parent_span_id.hex() == f"{3:016x}"
    assert [link.span_id.hex()[-1] for link in found.links] == ["1", "2"]
    assert (found.start_time_unix_nano, found.end_time_unix_nano) == (5000, 7000)


def test_langfuse_gives_back_the_attributes_as_they_were_sent() -> None:
    spans = spans_of(FILES["Langfuse export"])
    tool = attributes(named(spans, "get_weather"))
    assert tool["input.value"] == '{"city":"Tokyo"}'
    assert tool["output.value"] == "The weather in Tokyo is sunny."
    model = attributes(named(spans, "response"))
    assert isinstance(model["llm.token_count.prompt"], int)
    resource_spans = only(FILES["Langfuse export"])
    assert attributes(resource_spans.resource)["telemetry.sdk.version"] == "1.37.0"
    assert resource_spans.scope_spans[0].scope.name == "openinference.instrumentation.openai_agents"
    root = named(spans, "Agent workflow")
    assert root.start_time_unix_nano == 1759223039_962_000_000
    assert not root.parent_span_id


def test_langfuse_columns_of_its_own_sdk_become_attributes_again(tmp_path: Path) -> None:
    observation = {
        "id": "00d3f40ee8e3b716",
        "traceId": "7a38edd8123db47ad8dcb8aa4c5e3926",
        "type": "TOOL",
        "name": "search",
        "startTime": "2025-12-04T14:51:22.049Z",
        "endTime": None,
        "level": "ERROR",
        "statusMessage": "no such page",
        "input": {"query": "cats"},
        "output": None,
        "metadata": {
            "resourceAttributes": {},
            "scope": {"name": "langfuse-sdk", "version": "3", "attributes": {"public_key": "pk"}},
        },
    }
    path = written(tmp_path, {"trace": {"id": "7a"}, "observations": [observation]})
    (found,) = spans_of(path)
    assert attributes(found) == {
        "langfuse.observation.type": "tool",
        "langfuse.observation.level": "ERROR",
        "langfuse.observation.status_message": "no such page",
        "langfuse.observation.input": '{"query":"cats"}',
    }
    assert (found.status.code, found.status.message, found.end_time_unix_nano) == (2, "no such page", 0)
    assert attributes(only(path).scope_spans[0].scope) == {"public_key": "pk"}


def test_langfuse_columns_of_the_conventions_become_attributes_again() -> None:
    spans = {
        span.name: attributes(span)
        for span in spans_of(CORPORA / "langfuse-framework-traces" / "microsoft-agent-2025-10-14.json")
    }
    assert json.loads(spans["execute_tool get_weather"]["gen_ai.tool.call.arguments"]) == {"location": "Portland"}
    (message,) = json.loads(spans["chat gpt-4o"]["gen_ai.output.messages"])
    assert message["role"] == "assistant"


def test_a_list_of_documents_and_a_file_of_lines_may_mix_shapes_and_hold_other_things(tmp_path: Path) -> None:
    otlp = json.loads(FILES["OTLP/JSON"].read_text().splitlines()[0])
    run = json.loads(FILES["agentdojo"].read_text().splitlines()[0])
    logs: dict[str, Any] = {"resourceLogs": []}
    (mixed,) = read([written(tmp_path, [otlp, logs, run])])
    assert mixed.source == "OTLP/JSON, agentdojo"
    assert not mixed.transcript
    (lines,) = read([written(tmp_path, "\n\n".join(map(json.dumps, [logs, otlp, run])), "lines.jsonl")])
    assert lines.spans == mixed.spans == sum(1 for request in mixed.requests() for _ in spans_in(request))


def test_a_large_document_goes_out_in_requests_of_an_sdks_size(tmp_path: Path) -> None:
    span = {"trace_id": "t", "name": "n", "start_time": 1, "end_time": 2, "attributes": {}}
    many = [{**span, "span_id": f"s-{number}"} for number in range(SPANS_A_REQUEST + 1)]
    requests = requests_of(written(tmp_path, many))
    assert [sum(1 for _ in spans_in(request)) for request in requests] == [SPANS_A_REQUEST, 1]


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"resourceLogs": []}, "OTLP log records"),
        ({"resourceMetrics": []}, "OTLP metrics"),
        ({"scenario": "refund_ok", "calls": [], "ended": "answer"}, "the truth of a scenario"),
        ({"eval_set_id": "e", "eval_cases": []}, "an evaluation set"),
    ],
)
def test_what_is_known_to_hold_no_spans_is_skipped_and_named(tmp_path: Path, document: Any, what: str) -> None:
    (recording,) = read([written(tmp_path, document)])
    assert recording.skipped == f"holds no spans but {what}"
    assert list(recording.requests()) == []


def test_an_evaluation_set_beside_traces_is_skipped_in_its_folder() -> None:
    recordings = {recording.path.name: recording for recording in read([DATA / "agentevals"])}
    assert recordings["eval_set_helm.json"].skipped == "holds no spans but an evaluation set"
    assert recordings["helm_trimmed.json"].source == "Jaeger JSON"
    assert list(recordings) == sorted(recordings)


@pytest.mark.parametrize("document", [{"cats": 3}, [{"cats": 3}], "just text", 3, None])
def test_an_unknown_shape_is_an_error_that_says_which_shapes_are_known(tmp_path: Path, document: Any) -> None:
    path = written(tmp_path, json.dumps(document))
    with pytest.raises(ConfigurationError, match=r"unknown shape") as error:
        list(read([path]))
    assert str(path) in str(error.value)
    assert all(name in str(error.value) for name in ("OTLP/JSON", "Jaeger JSON", "tau-bench"))


def test_an_unknown_shape_in_a_folder_is_skipped_with_its_keys(tmp_path: Path) -> None:
    written(tmp_path, {"cats": 3, "dogs": 4})
    (recording,) = read([tmp_path])
    assert recording.skipped == "holds no spans but an object of unknown shape (its keys: cats, dogs)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"resourceSpans": [', "is neither JSON nor one JSON document a line: line 1 is cut off"),
        ('{\n"resourceSpans":\n[\n\n', "is neither JSON nor one JSON document a line: line 3 is cut off"),
        ('{\n"resourceSpans":\noops\n}', "is neither JSON nor one JSON document a line: line 3: "),
        ('{\n"a":\n"\xff"\n}', "is neither JSON nor one JSON document a line: line 3: "),
        ('{"resourceLogs": []}\n{"resourceSp', "line 2 is cut off"),
        ('{"resourceLogs": []}\noops', "line 2 is not JSON"),
        ("\x1f\x8b\x08\0\n{", r"is compressed \(gzip\); decompress it first"),
        ("\x28\xb5\x2f\xfd\n", r"is compressed \(zstd\); decompress it first"),
        ("\xff\xfe{\0}\0", "is not UTF-8 but UTF-16 or binary; save it as UTF-8"),
        ("{\0}\0", "is not UTF-8 but UTF-16 or binary; save it as UTF-8"),
        ("{}", "line 1: an empty object. The shapes known are"),
        (
            '{"task_id": 1, "trial": 0, "traj": [{"content": "no role"}]}',
            "line 1 looks like tau-bench, but cannot be read as such",
        ),
        (
            '{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": 3}]}]}]}',
            "line 1 looks like OTLP/JSON, but cannot be read as such",
        ),
        ('[{"trace_id": "t", "span_id": "s", "start_time": -5}]', "looks like span dictionaries, but cannot be read as such"),
        ("\xff", "is neither JSON"),
    ],
)
def test_a_broken_file_is_an_error_that_says_where(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigurationError, match=message):
        list(read([path]))


def test_a_folder_without_such_files_says_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(
        ConfigurationError, match=r"no recorded traces in .*: files whose names end in \.json, \.jsonl, \.ndjson are"
    ):
        list(read([tmp_path]))


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        list(read([tmp_path / "nowhere"]))


def test_a_byte_order_mark_and_blank_lines_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "marked.jsonl"
    path.write_bytes(b"\xef\xbb\xbf\n" + FILES["OTLP/JSON"].read_bytes() + b"\n\n")
    assert spans_of(path) == spans_of(FILES["OTLP/JSON"])


def test_an_empty_file_holds_no_spans(tmp_path: Path) -> None:
    (recording,) = read([written(tmp_path, "")])
    assert recording.skipped == "holds no spans"
