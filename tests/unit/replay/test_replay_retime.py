import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collectors.replay import Times, read, requests_of, retime
from collectors.replay.wire import spans_in
from pipeline.model.run import BACKFILL

DEMO = Path(__file__).parents[3] / "pipeline" / "apps" / "demo" / "traces"
SESSION = DEMO / "openai-agents" / "session.jsonl"
TAU = DEMO / "tau-bench" / "gpt-4o-airline.sample.jsonl"
NOW = 1_900_000_000_000_000_000


def replayed(*paths: Path, times: Times, now_ns: int = NOW, same_ids: bool = False) -> list[ExportTraceServiceRequest]:
    return list(retime(list(read(paths)), times, now_ns, same_ids=same_ids))


def spans_of(requests: list[ExportTraceServiceRequest]) -> list[Span]:
    return [span for request in requests for span in spans_in(request)]


def attributes(holder: Any) -> dict[str, Any]:
    return {item.key: item.value.string_value for item in holder.attributes}


def ids(spans: list[Span]) -> set[tuple[bytes, bytes]]:
    return {(span.trace_id, span.span_id) for span in spans}


SPAN_TIMES = st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.one_of(st.none(), st.integers(0, 10**6))).map(
    lambda drawn: (drawn[0], drawn[0] + drawn[1], drawn[2])
)


@given(st.lists(st.lists(SPAN_TIMES, min_size=1, max_size=5), min_size=1, max_size=3), st.integers(10**15, 10**18))
def test_shifting_keeps_durations_and_order_over_all_files_and_ends_now(
    files: list[list[tuple[int, int, int | None]]], now_ns: int
) -> None:
    base = 1_700_000_000_000_000_000
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, times in enumerate(files):
            spans = [
                {
                    "trace_id": f"t{number}",
                    "span_id": f"s{place}",
                    "start_time": base + start,
                    "end_time": base + end,
                    "events": [] if event is None else [{"name": "e", "timestamp": base + event}],
                }
                for place, (start, end, event) in enumerate(times)
            ]
            paths.append(Path(folder) / f"{number}.json")
            paths[-1].write_text(json.dumps(spans))
        moved = spans_of(replayed(*paths, times=Times.SHIFTED, now_ns=now_ns))
    flat = [times for file in files for times in file]
    shift = now_ns - base - max(end for _, end, _ in flat)
    assert max(span.end_time_unix_nano for span in moved) == now_ns
    assert [(s.start_time_unix_nano, s.end_time_unix_nano) for s in moved] == [
        (base + a + shift, base + b + shift) for a, b, _ in flat
    ]
    assert [e.time_unix_nano for s in moved for e in s.events] == [base + e + shift for _, _, e in flat if e is not None]


def test_original_times_send_what_was_recorded() -> None:
    assert replayed(SESSION, TAU, times=Times.ORIGINAL) == [*requests_of(SESSION), *requests_of(TAU)]


def test_shifted_spans_have_new_ids_whose_parents_resolve_and_say_what_they_were() -> None:
    before = spans_of(requests_of(SESSION))
    after = spans_of(replayed(SESSION, times=Times.SHIFTED))
    assert not ids(before) & ids(after)
    assert not {span.trace_id for span in before} & {span.trace_id for span in after}
    known = {span.span_id.hex(): moved.span_id for span, moved in zip(before, after, strict=True)}
    for span, moved in zip(before, after, strict=True):
        assert attributes(moved)["tracegrade.original_trace_id"] == span.trace_id.hex()
        assert attributes(moved)["tracegrade.original_span_id"] == span.span_id.hex()
        assert moved.parent_span_id == (known[span.parent_span_id.hex()] if span.parent_span_id else b"")
    assert len({span.trace_id for span in after}) == len({span.trace_id for span in before}) == 2


def test_same_ids_keeps_them_and_moves_only_the_times() -> None:
    before = spans_of(requests_of(SESSION))
    after = spans_of(replayed(SESSION, times=Times.SHIFTED, same_ids=True))
    assert ids(before) == ids(after)
    assert max(span.end_time_unix_nano for span in after) == NOW
    assert all(attributes(one) == attributes(other) for one, other in zip(before, after, strict=True))


def test_a_replay_at_another_time_is_another_replay_and_at_the_same_time_the_same() -> None:
    once = spans_of(replayed(SESSION, times=Times.SHIFTED))
    assert spans_of(replayed(SESSION, times=Times.SHIFTED)) == once
    assert not ids(once) & ids(spans_of(replayed(SESSION, times=Times.SHIFTED, now_ns=NOW + 1)))


def test_backfill_keeps_times_marks_the_environment_and_repeats_under_the_same_ids() -> None:
    before = spans_of(requests_of(SESSION))
    requests = replayed(SESSION, times=Times.BACKFILL)
    after = spans_of(requests)
    assert [span.end_time_unix_nano for span in after] == [span.end_time_unix_nano for span in before]
    assert not ids(before) & ids(after)
    assert after == spans_of(replayed(SESSION, times=Times.BACKFILL, now_ns=NOW + 5))
    resources = [resource_spans.resource for request in requests for resource_spans in request.resource_spans]
    assert {attributes(resource)["deployment.environment.name"] for resource in resources} == {BACKFILL}
    assert attributes(resources[0])["service.name"] == "support-desk"


def test_backfill_replaces_the_environment_that_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "recorded.json"
    resource = {"attributes": [{"key": "deployment.environment.name", "value": {"stringValue": "production"}}]}
    path.write_text(json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [{"name": "n"}]}]}]}))
    (request,) = replayed(path, times=Times.BACKFILL)
    (found,) = request.resource_spans[0].resource.attributes
    assert found.value.string_value == BACKFILL


def test_links_are_mapped_like_the_spans_that_they_mean(tmp_path: Path) -> None:
    target = {"trace_id": "a", "span_id": "b", "start_time": 5, "end_time": 6}
    source = {"trace_id": "c", "span_id": "d", "start_time": 7, "end_time": 0, "links": [{"trace_id": "a", "span_id": "b"}]}
    path = tmp_path / "linked.json"
    path.write_text(json.dumps([target, source]))
    one, other = spans_of(replayed(path, times=Times.SHIFTED))
    assert (other.links[0].trace_id, other.links[0].span_id) == (one.trace_id, one.span_id)
    assert other.end_time_unix_nano == 0
    assert attributes(one)["tracegrade.original_span_id"] == "b"


def test_transcripts_have_no_order_with_recorded_spans_and_end_now_by_themselves() -> None:
    recorded = spans_of(replayed(SESSION, TAU, times=Times.SHIFTED))[: len(spans_of(requests_of(SESSION)))]
    transcripts = spans_of(replayed(SESSION, TAU, times=Times.SHIFTED))[len(recorded) :]
    assert max(span.end_time_unix_nano for span in recorded) == NOW
    assert max(span.end_time_unix_nano for span in transcripts) == NOW


def test_a_replay_of_a_replay_keeps_the_first_ids(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    marked = {
        "trace_id": "a",
        "span_id": "b",
        "start_time": 5,
        "end_time": 6,
        "attributes": {"tracegrade.original_trace_id": "first"},
    }
    path.write_text(json.dumps([marked]))
    (span,) = spans_of(replayed(path, times=Times.SHIFTED))
    assert [item.value.string_value for item in span.attributes if item.key == "tracegrade.original_trace_id"] == ["first"]
