"""What is stored is what was said: nouns through the engine and back."""

from collections.abc import Iterable
from itertools import count
from typing import Any

from builders import T0, a_span
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from unit.clickhouse.records import a_run, a_run_version, a_version, stored

from pipeline.model.contract import Contract
from pipeline.model.log_record import LogRecord
from pipeline.model.log_record import seal as seal_log
from pipeline.model.result import Feedback, Judgment, Outcome
from pipeline.model.span import Event, Link, Span, seal
from pipeline.model.time import MINUTE, SECOND
from pipeline.model.topology import DeadLetter
from pipeline.model.version import Retraction, StoredTrace
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.dead_letters import bury
from sinks.clickhouse.facts import insert_contracts, insert_feedback, insert_judgments, insert_log_records, insert_spans
from sinks.clickhouse.run_rows import run_rows, tool_calls_of
from sinks.clickhouse.traces import load
from sinks.clickhouse.writer import write

projects = (f"rows-{number}" for number in count())
TRACE = "ab" * 16


def loaded(database: ClickHouse, project: str) -> StoredTrace:
    """The one trace of a project."""
    return load(database, [(project, TRACE)])[project, TRACE]


def first_received(facts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """When each fact came first, by what it is known by."""
    first: dict[str, int] = {}
    for known_by, received_ns in facts:
        first[known_by] = min(first.get(known_by, received_ns), received_ns)
    return first


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
whole = st.integers(-(2**63), 2**64 - 1)
plain: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | whole | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
attributes = st.dictionaries(text, plain, max_size=4)
moment = st.integers(0, 2**64 - 1)
spans = st.builds(
    Span,
    project=st.just(""),
    trace_id=st.just(TRACE),
    span_id=st.sampled_from(["00000000000000a1", "00000000000000a2"]),
    parent_id=text,
    name=text,
    start_ns=moment,
    end_ns=moment,
    received_ns=st.integers(0, 2**63 - 1),
    kind=st.integers(-(2**31), 2**31 - 1),
    status_code=st.integers(-(2**31), 2**31 - 1),
    status_message=text,
    attributes=attributes,
    events=st.lists(st.builds(Event, text, moment, attributes), max_size=2).map(tuple),
    links=st.lists(st.builds(Link, text, text, attributes), max_size=2).map(tuple),
    resource=attributes,
    scope_name=text,
    scope_version=text,
    trace_state=text,
    flags=st.integers(0, 2**32 - 1),
    dropped=st.integers(0, 3 * 2**32),
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some=st.lists(spans, min_size=1, max_size=4))
def test_a_span_read_back_has_the_content_hash_it_was_stored_under(database: ClickHouse, some: list[Span]) -> None:
    project = next(projects)
    sealed = [seal(replace(span, project=project)) for span in some]
    insert_spans(database, sealed)
    read = loaded(database, project).spans
    assert all(seal(span) == span for span in read)
    expected = first_received((f"{span.span_id} {span.content_hash}", span.received_ns) for span in sealed)
    assert {f"{span.span_id} {span.content_hash}": span.received_ns for span in read} == expected


log_records = st.builds(
    LogRecord,
    project=st.just(""),
    trace_id=st.just(TRACE),
    span_id=st.sampled_from(["00000000000000a1", "00000000000000a2"]),
    event_name=text,
    time_ns=moment,
    received_ns=st.integers(0, 2**63 - 1),
    position=st.integers(0, 2**32 - 1),
    severity=st.integers(-(2**31), 2**31 - 1),
    body=plain,
    attributes=attributes,
    resource=attributes,
    scope_name=text,
    scope_version=text,
    dropped=st.integers(0, 2**32),
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some=st.lists(log_records, min_size=1, max_size=4))
def test_a_log_record_read_back_is_what_was_stored_as_it_was_first_received(database: ClickHouse, some: list[LogRecord]) -> None:
    project = next(projects)
    sealed = [seal_log(replace(record, project=project)) for record in some]
    insert_log_records(database, sealed)
    read = loaded(database, project).log_records
    assert all(seal_log(record) == record for record in read)
    expected = first_received((record.content_hash, record.received_ns) for record in sealed)
    assert {record.content_hash: record.received_ns for record in read} == expected


def test_the_least_receipt_of_a_span_wins_in_whatever_order_it_comes(database: ClickHouse) -> None:
    late, early, middle = (a_span(project="least", received_ns=T0 + seconds * SECOND) for seconds in (9, 2, 5))
    for span in (late, early, middle):
        insert_spans(database, [span])
    (read,) = loaded(database, "least").spans
    assert read == early


def test_the_same_batch_sent_again_is_not_stored_twice(database: ClickHouse) -> None:
    batch = [a_span(f"{number:016x}", project="again") for number in range(50)]
    insert_spans(database, batch)
    insert_spans(database, batch)
    assert len(stored(database, "spans", "again")) == 50


def test_a_batch_that_differs_in_one_receipt_is_not_taken_for_the_same(database: ClickHouse) -> None:
    batch = [a_span(f"{number:016x}", project="differs") for number in range(3)]
    insert_spans(database, batch)
    insert_spans(database, [*batch[:2], replace(batch[2], received_ns=batch[2].received_ns - 1)])
    read = loaded(database, "differs").spans
    assert [span.received_ns - batch[0].received_ns for span in read] == [0, 0, -1]


def a_judgment(project: str, **fields: Any) -> Judgment:
    values: dict[str, Any] = {
        "trace_id": TRACE,
        "run_id": "r1",
        "run_version": 8,
        "transcript_hash": "t1",
        "contract": "c1",
        "dimension": "correctness",
        "outcome": Outcome.PASS,
        "score": 4.0,
        "reason": "It refunded the order.",
        "quote": "ok",
        "model": "judge-1",
        "votes": 3,
        "input_tokens": 3000,
        "output_tokens": 300,
        "cost_usd": 0.003015,
        "flags": ("same_family",),
        "judged_ns": T0 + 123456789,
    }
    return Judgment(project=project, **(values | fields))


def test_judgments_come_back_whole_with_what_is_unknown_unknown(database: ClickHouse) -> None:
    given = [
        a_judgment("judged"),
        a_judgment(
            "judged",
            dimension="tone",
            outcome=Outcome.GRADER_ERROR,
            score=None,
            unresolved="grader_error",
            cost_usd=None,
            flags=(),
        ),
    ]
    insert_judgments(database, given)
    read = loaded(database, "judged").judgments
    assert sorted(read, key=lambda one: one.dimension) == given


def test_the_first_answer_to_a_question_stays(database: ClickHouse) -> None:
    first, second = a_judgment("first"), a_judgment("first", score=1.0, judged_ns=T0 + 10 * SECOND)
    insert_judgments(database, [second])
    insert_judgments(database, [first])
    assert loaded(database, "first").judgments == (first,)


def test_feedback_comes_back_and_the_first_receipt_stays(database: ClickHouse) -> None:
    first = Feedback("thumbs", TRACE, "f1", -1.0, "r1", "ann", "Wrong order ☹", T0)
    insert_feedback(database, [replace(first, value=1.0, received_ns=T0 + 1)])
    insert_feedback(database, [first])
    assert loaded(database, "thumbs").feedback == (first,)


def test_a_judges_claim_of_impossible_tokens_costs_no_batch(database: ClickHouse) -> None:
    insert_judgments(database, [a_judgment("greedy", input_tokens=-5, output_tokens=10**30)])
    (read,) = loaded(database, "greedy").judgments
    assert (read.input_tokens, read.output_tokens) == (0, 2**64 - 1)


def test_lone_surrogates_of_a_model_are_stored_as_replacement_characters(database: ClickHouse) -> None:
    insert_judgments(
        database, [a_judgment("surrogate", quote="a\ud800b", flags=("x\udfff",)), a_judgment("surrogate", dimension="tone")]
    )
    read = {one.dimension: one for one in loaded(database, "surrogate").judgments}
    assert read["correctness"].quote == "a\ufffdb"
    assert read["correctness"].flags == ("x\ufffd",)
    assert read["tone"].quote == "ok"


def test_a_nul_and_quotes_and_backslashes_are_text_like_any_other(database: ClickHouse) -> None:
    said = "'; DROP TABLE spans; -- \\ \0 \t \n {project:String} %(x)s"
    project = f"project {said}"
    insert_spans(database, [a_span(project=project, name=said)])
    (read,) = loaded(database, project).spans
    assert read.name == said


def test_a_contract_is_found_by_its_hash(database: ClickHouse) -> None:
    contract = Contract(kind="code", dimension="answer_present", check_definition={"min": 1})
    insert_contracts(database, [contract])
    insert_contracts(database, [contract])
    rows = database.query("SELECT body FROM contracts FINAL WHERE contract = {name:String}", {"name": contract.hash})
    assert rows == [{"body": contract.canonical}]


def test_what_could_not_be_processed_keeps_its_bytes_once(database: ClickHouse) -> None:
    for _ in range(2):
        bury(database, [DeadLetter("buried", "assemble", "it broke", b"\x00\xff\xfe")])
    rows = database.query("SELECT hex(body) AS body, reason FROM dead_letters FINAL WHERE project = 'buried'")
    assert rows == [{"body": "00FFFE", "reason": "it broke"}]


def test_a_runs_row_says_what_the_run_did(database: ClickHouse) -> None:
    version = a_run_version(a_run("said"), 8, failing=("verdict",), requested_ns=T0, deadline_ns=T0 + 15 * MINUTE)
    write(database, [a_version(version)])
    (row,) = stored(database, "runs", "said")
    del row["inserted_at"]
    assert row.pop("called") == sorted({call.name for call in version.run.tool_calls}), "read off tool_calls by the engine"
    assert row == run_rows(a_version(version))[0]
    assert tool_calls_of(row) == version.run.tool_calls


def test_live_and_retracted_rows_have_the_same_columns() -> None:
    run = a_run("columns")
    live, retracted = run_rows(a_version(a_run_version(run), retractions=(Retraction("gone", "heir", 8),)))
    assert live.keys() == retracted.keys()
