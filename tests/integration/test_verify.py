"""Stored scores made again from stored inputs: equal, or what differs is named."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from recordings import PROJECT, arrived, recordings

from collectors.dialects import read
from collectors.dialects.plug_ins import installed
from pipeline.apps.explain.explanation import explained
from pipeline.apps.explain_command import facts_of
from pipeline.apps.revision import revision
from pipeline.apps.verify_commands import lines, verifier_of
from pipeline.config.grading import contracts, grading_of
from pipeline.config.store import StoreSettings
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model import log_record, span
from pipeline.model.log_record import LogRecord
from pipeline.model.result import Feedback, JudgeRequest, Judgment, Outcome
from pipeline.model.span import Span
from pipeline.model.time import DAY
from pipeline.model.version import TraceVersion
from pipeline.stages.assemble import TraceState
from pipeline.stages.close import AssembleSettings
from pipeline.stages.turn import Assembly, turn
from pipeline.stages.verify import Cause, Verification
from sinks.clickhouse.board import BoardRow
from sinks.clickhouse.store import Store

POLICY = {"name": "one_refund", "at_most": {"tool": "issue_refund", "times": 1, "per": "order_id"}}


COMMIT = "c0ffee"
"""Of the code that graded; whoever makes the scores again is at another."""
SOME = 12
"""Runs, where one is as good as all."""
FRAMEWORKS = ("live/openai-agents", "live/adk", "live/openai-v2")


def settings(path: Path, most: int = 1, weight: str = "support") -> TracegradeSettings:
    policy = {**POLICY, "at_most": {**POLICY["at_most"], "times": most}}  # type: ignore[dict-item]
    judge = {"base_url": "http://127.0.0.1:1/v1", "model": "nobody-asks-it", "uncalibrated": "decide"}
    return TracegradeSettings.model_validate(
        {"store": {"path": path}, "judge": judge, "agents": {"default": {"rubric": weight, "checks": {"policies": [policy]}}}}
    )


def renamed(one: Span | LogRecord, copy: int) -> Span | LogRecord:
    """The same fact in a trace of its own."""
    trace_id = f"{copy:04x}{one.trace_id[4:]}"
    if isinstance(one, Span):
        return span.seal(msgspec.structs.replace(one, trace_id=trace_id))
    return log_record.seal(msgspec.structs.replace(one, trace_id=trace_id))


async def graded(store: Store, made: TracegradeSettings, copies: int) -> None:
    """Store recorded traces and what grading makes of them."""
    assembly = Assembly(read=read, settings=AssembleSettings(), grading_of=grading_of(made), revision=COMMIT)
    await store.insert_contracts(contracts(made))
    for copy in range(copies):
        facts = [renamed(one, copy) for folder in FRAMEWORKS for path in recordings(folder) for one in arrived(path)]
        await store.insert_spans([one for one in facts if isinstance(one, Span)])
        await store.insert_log_records([one for one in facts if isinstance(one, LogRecord)])
        traces: dict[str, list[Span | LogRecord]] = {}
        for one in facts:
            traces.setdefault(one.trace_id, []).append(one)
        made_of = [_graded(assembly, one) for one in traces.values()]
        await store.insert_judgments([judgment for one in made_of for judgment in one.judgments])
        await store.insert_feedback([one.feedback for one in made_of])
        await store.write([one.version for one in made_of if one.version is not None])


class Made(NamedTuple):
    """What a judge and a user said of a trace, and what it comes to with that."""

    judgments: list[Judgment]
    feedback: Feedback
    version: TraceVersion | None


def _graded(assembly: Assembly, facts: list[Span | LogRecord]) -> Made:
    state = TraceState(PROJECT, facts[0].trace_id)
    feedback = Feedback(
        PROJECT, facts[0].trace_id, f"said-{facts[0].trace_id}", -1.0, comment="Not what I wanted \ud800.", received_ns=1
    )
    state.add([*facts, feedback])
    now = state.last_received_ns + 2 * DAY
    judgments = [
        _judgment(request, dimension, contract)
        for request in turn(state, now, now, assembly).requests
        for dimension, contract in request.dimensions
    ]
    state.add(judgments)
    return Made(judgments, feedback, turn(state, now, now, assembly).version)


def _judgment(request: JudgeRequest, dimension: str, contract: str) -> Judgment:
    return Judgment(
        PROJECT,
        request.trace_id,
        request.run_id,
        request.run_version,
        request.transcript_hash,
        contract,
        dimension,
        Outcome.PASS,
        4.0,
        reason="It agrees.",
        quote="…",
        model="nobody-asks-it",
        votes=1,
        cost_usd=0.003015,
        judged_ns=request.requested_ns,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("verify")


@pytest.fixture(scope="module")
def store(folder: Path) -> Iterator[Store]:
    opened = Store.open(StoreSettings(path=folder))
    asyncio.run(graded(opened, settings(folder), copies=1))
    yield opened
    asyncio.run(opened.close())


async def verified(store: Store, made: TracegradeSettings, limit: int = 2000) -> list[Verification]:
    return await verifier_of(made, store).latest(PROJECT, limit)


async def test_what_is_stored_comes_out_again(store: Store, folder: Path) -> None:
    found = await verified(store, settings(folder))
    assert len(found) > 40
    assert [one for one in found if not one.equal] == []
    assert sum(one.scores for one in found) > 5 * len(found)
    assert {(one.revision, one.revision_again) for one in found} == {(COMMIT, revision())}
    *_, code = lines(msgspec.to_builtins(found))
    assert code == f"graded by code {COMMIT} ({len(found)}); made again by code {revision()}"


async def test_another_policy_is_named_as_the_part_of_the_contract_that_differs(store: Store, folder: Path) -> None:
    found = await verified(store, settings(folder, most=2), SOME)
    assert not any(one.equal for one in found)
    for one in found:
        assert {each.cause for each in one.differences} == {Cause.CONTRACT}
        said = {each.what: (each.stored, each.again) for each in one.differences}
        assert said["one_refund: check_definition.times"] == ("1", "2")
        assert "verdict: check_definition.gates.one_refund" in said


async def test_another_rubric_is_named(store: Store, folder: Path, tmp_path: Path) -> None:
    shipped = (Path(__file__).parents[2] / "pipeline" / "judges" / "rubrics" / "support.yaml").read_text("utf-8")
    mine = tmp_path / "mine.yaml"
    mine.write_text(shipped.replace('weight: "0.35"', 'weight: "0.30"').replace('weight: "0.10"', 'weight: "0.15"'), "utf-8")
    found = await verified(store, settings(folder, weight=str(mine)), SOME)
    assert len(found) == SOME
    assert not any(one.equal for one in found)
    for one in found:
        assert "verdict: rubric_hash" in {each.what for each in one.differences}


def altered_rows(store: Store, table: str, where: str, change: str) -> None:
    """Change rows by hand, as somebody with access to the database could."""
    store._folds._database.command(f"ALTER TABLE {table} UPDATE {change} WHERE {where} SETTINGS mutations_sync = 1")


class Change(NamedTuple):
    """A change of one stored input by hand, how it is taken back, and what is to be named."""

    table: str
    where: str
    change: str
    back: str
    named: str


async def changes(store: Store, run: BoardRow) -> list[Change]:
    """A change of each kind of input of a run."""
    trace = (await store.load([(PROJECT, run.trace_id)]))[PROJECT, run.trace_id]
    of_trace = f"project = '{PROJECT}' AND trace_id = '{run.trace_id}'"
    one, judgment, feedback = trace.spans[0], trace.judgments[0], trace.feedback[0]
    by_id = f"{of_trace} AND judgment_id = '{judgment.id}'"
    judged = f"judgment {judgment.id} of {judgment.dimension}"
    message = f"status_message = '{one.status_message}'"
    return [
        Change("spans", f"{of_trace} AND span_id = '{one.span_id}'", "status_message = 'fine'", message, f"span {one.span_id}"),
        Change("judgments", by_id, "score = 5", "score = 4", judged),
        Change("judgments", by_id, "reason = 'It does not.'", "reason = 'It agrees.'", judged),
        Change("feedback", of_trace, "value = 1", "value = -1", f"feedback {feedback.id}"),
    ]


async def judged_run(store: Store, most: int = 100) -> BoardRow:
    """A run that somebody judged."""
    return next(one for one in await store.scoreboard(PROJECT, most) if one.run_class == "judged")


async def test_an_input_that_was_changed_by_hand_is_named(store: Store, folder: Path) -> None:
    run = await judged_run(store)
    verifier = verifier_of(settings(folder), store)
    for one in await changes(store, run):
        assert (await verifier.one(PROJECT, run.run_id)).equal
        altered_rows(store, one.table, one.where, one.change)
        after = await verifier.one(PROJECT, run.run_id)
        assert [each.what for each in after.differences if each.cause is Cause.INPUT] == [one.named]
        assert next(lines(msgspec.to_builtins([after], str_keys=True))) == f"{run.run_id}: not equal: code {COMMIT} graded it"
        altered_rows(store, one.table, one.where, one.back)


async def test_a_judgment_that_is_gone_is_no_equality(store: Store, folder: Path) -> None:
    run = await judged_run(store)
    trace = (await store.load([(PROJECT, run.trace_id)]))[PROJECT, run.trace_id]
    where = f"trace_id = '{run.trace_id}' AND judgment_id = '{trace.judgments[0].id}'"
    store._folds._database.command(f"ALTER TABLE judgments DELETE WHERE {where} SETTINGS mutations_sync = 1")
    after = await verifier_of(settings(folder), store).one(PROJECT, run.run_id)
    assert after.why_not == "facts that it was graded by are not stored any more"
    await store.insert_judgments(trace.judgments[:1])


async def test_a_score_that_was_changed_by_hand_is_named(store: Store, folder: Path) -> None:
    run = (await store.scoreboard(PROJECT, 1))[0]
    altered_rows(store, "results", f"run_id = '{run.run_id}' AND dimension = 'answer_present'", "reason = 'because'")
    after = await verifier_of(settings(folder), store).one(PROJECT, run.run_id)
    assert [(each.cause, each.what, each.stored) for each in after.differences] == [
        (Cause.SCORE, "answer_present: reason", "because")
    ]
    altered_rows(store, "results", f"run_id = '{run.run_id}' AND dimension = 'answer_present'", "reason = ''")


async def test_a_stored_run_can_be_explained_from_what_the_api_says_of_it(store: Store) -> None:
    line = (await store.scoreboard(PROJECT, 1))[0]
    told = msgspec.json.decode(msgspec.json.encode(await facts_of(store, PROJECT, line.run_id)))
    spans, records = msgspec.convert(told["spans"], list[Span]), msgspec.convert(told["log_records"], list[LogRecord])
    explanation = explained(spans, records, installed())
    assert line.run_id in {note.run.run_id for note in explanation.runs}
    assert all(span.seal(one).content_hash == one.content_hash for one in spans)


@pytest.mark.real
@pytest.mark.timeout(1800)
async def test_a_thousand_runs_are_equal_until_one_input_of_each_kind_is_changed(tmp_path: Path) -> None:
    opened = Store.open(StoreSettings(path=tmp_path))
    try:
        await graded(opened, settings(tmp_path), copies=16)
        found = await verified(opened, settings(tmp_path), limit=1000)
        print("", *lines(msgspec.to_builtins(found)), sep="\n")  # noqa: T201 - counts for a reader
        assert len(found) == 1000
        assert all(one.equal for one in found)
        judged = {run.trace_id: run for run in await opened.scoreboard(PROJECT, 1000) if run.run_class == "judged"}
        runs = list(judged.values())[:3]
        span_of, judgment_of, feedback_of = [await changes(opened, run) for run in runs]
        made = [span_of[0], judgment_of[1], feedback_of[3]]
        for one in made:
            altered_rows(opened, one.table, one.where, one.change)
        found = await verified(opened, settings(tmp_path), limit=1000)
    finally:
        await opened.close()
    print("", *lines(msgspec.to_builtins(found)), sep="\n")  # noqa: T201 - counts for a reader
    named = {each.what: other.run_id for other in found for each in other.differences if each.cause is Cause.INPUT}
    assert named.keys() == {one.named for one in made}
    unequal = {other.run_id for other in found if not other.equal}
    assert unequal >= {run.run_id for run in runs}
    assert len(unequal) < 20, "runs of other traces are what they were"


async def test_a_transcript_that_a_judge_would_not_be_shown_now_is_named(store: Store, folder: Path) -> None:
    made = settings(folder)
    least = made.judge.model_copy(update={"transcript_budget": 1000})
    shorter = verifier_of(made.model_copy(update={"judge": least}), store)
    named = 0
    for line in await store.scoreboard(PROJECT, SOME):
        detail = await store.run_detail(PROJECT, line.run_id)
        found = await shorter.one(PROJECT, line.run_id)
        inputs = [(each.what, each.stored) for each in found.differences if each.cause is Cause.INPUT]
        is_cut = detail.transcript is not None and len(detail.transcript) > 1000
        assert inputs == ([("transcript", detail.transcript_hash)] if is_cut else [])
        named += is_cut
    assert named
