"""Promises 2, 3 and 4 as laws: order, splits, redelivery, wakes, late judgments and crashes change nothing that a reader can see."""

import asyncio
from typing import Any

import msgspec
import pytest
from assembly_law import (
    GRADING,
    assert_accounting,
    assert_an_earlier_receipt_moves_a_run,
    assert_schedule_changes_nothing,
    facts,
    grading,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worlds import T0, Action, World, agent, in_order, log_record, model, run_world, schedules, span, tool, windows_of

from pipeline.model.ids import run_id
from pipeline.model.result import Feedback
from pipeline.model.run import RunClass
from pipeline.model.span import Span, seal
from pipeline.model.time import DAY, MINUTE, SECOND
from pipeline.model.topology import Record
from pipeline.model.version import RunVersion

LAWS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@LAWS
@given(st.data())
def test_any_order_split_redelivery_wake_and_crash_gives_the_same_runs_results_and_windows(data: st.DataObject) -> None:
    records = data.draw(facts())
    assert_schedule_changes_nothing(records, data.draw(schedules(len(records))))


def test_a_run_without_an_end_counts_when_it_was_first_heard_of_whenever_that_turns_out() -> None:
    assert_an_earlier_receipt_moves_a_run()


@LAWS
@given(st.data())
def test_the_accounting_holds_after_every_step(data: st.DataObject) -> None:
    records = data.draw(facts())
    schedule = data.draw(schedules(len(records)))

    async def play() -> None:
        world = World(GRADING)
        for action in schedule:
            await world.act(action, records)
            assert_accounting(world)
        await world.settle()
        assert_accounting(world)
        assert not await world.store.unfinished()
        assert not await world.store.misplaced()

    asyncio.run(play())


def a_judged_run() -> list[Span]:
    return [
        agent(0, 0, None, "a", end=T0 + 5 * SECOND),
        tool(0, 1, 0, "lookup", fails=True),
        model(0, 2, 0, "refunded"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"end_ns": T0 + 30 * SECOND},
        {"end_ns": T0 - DAY},
        {"end_ns": T0 + MINUTE, "resource": {"service.name": "shop", "deployment.environment.name": "staging"}},
    ],
    ids=["across a minute", "across a day", "across a cohort"],
)
def test_a_judged_run_that_moves_is_counted_once(change: dict[str, Any]) -> None:
    first = a_judged_run()
    head = first[0]
    if change["end_ns"] < T0:  # the version that ended later comes second
        early = seal(msgspec.structs.replace(head, start_ns=head.start_ns - 2 * DAY, end_ns=change["end_ns"]))
        records = [early, *first[1:], head]
    else:
        records = [*first, seal(msgspec.structs.replace(head, **change))]
    apart = [
        Action("arrive", records=(0, 1, 2), seconds=60),
        Action("answer"),
        Action("arrive", records=(3,), seconds=60),
        Action("answer"),
    ]
    world = run_world(GRADING, records, apart)
    places = {row.key.place for row in world.store.results.values()}
    assert len(places) == 2, "the run did not move: the test shows nothing"
    assert_accounting(world)
    (run,) = world.store.live_runs()
    assert run.run_class in (RunClass.JUDGED, RunClass.UNRESOLVED)
    assert run.class_reason in ("", "insufficient_evidence"), "it was judged"
    assert sum(sums.n for (_, dimension, _), sums in windows_of(world).items() if dimension == "verdict") == 1
    assert_schedule_changes_nothing(records, apart)


def test_a_sub_agent_that_was_graded_alone_is_retracted_when_its_parent_comes() -> None:
    records = [agent(0, 1, 0, "sub"), model(0, 2, 1, "refunded"), agent(0, 0, None, "a"), model(0, 3, 0, "done")]
    apart = [Action("arrive", records=(0, 1), seconds=120), Action("answer"), Action("arrive", records=(2, 3), seconds=120)]
    world = run_world(GRADING, records, apart)
    assert len(world.store.runs) == 2
    (run,) = world.store.live_runs()
    assert run.run.place.cohort.agent == "a"
    assert_accounting(world)
    assert_schedule_changes_nothing(records, apart)


def test_a_judgment_of_a_superseded_transcript_writes_no_result() -> None:
    records = [*a_judged_run(), model(0, 4, 0, "sorry, it was not refunded after all", start=T0 + 4 * SECOND)]
    late_answer = [
        Action("arrive", records=(0, 1, 2), seconds=60),
        Action("arrive", records=(3,), seconds=60),
        Action("answer"),
    ]
    world = run_world(GRADING, records, late_answer)
    (run,) = world.store.live_runs()
    assert run.transcript is not None
    stored = {judgment.transcript_hash for judgments in world.store.judgments.values() for judgment in judgments.values()}
    assert len(stored) == 2, "both transcripts were judged, and both judgments are kept"
    counted = {row.transcript_hash for row in world.store.counting() if row.kind == "judged"}
    assert counted == {run.transcript.hash}


def expired_world(schedule: list[Action], records: list[Span]) -> list[RunVersion]:
    """The live runs after a schedule, before the judge is waited for."""

    async def play() -> World:
        world = World(GRADING)
        for action in schedule:
            await world.act(action, records)
        return world

    return asyncio.run(play()).store.live_runs()


def test_an_expired_judgment_that_comes_after_all_supersedes_the_expiry() -> None:
    records = a_judged_run()
    expired = [Action("arrive", records=(0, 1, 2), seconds=60), Action("silence", seconds=16 * 60)]
    world = run_world(GRADING, records, [*expired, Action("answer")])
    assert [run.class_reason for run in expired_world(expired, records)] == ["expired"]
    assert_schedule_changes_nothing(records, [*expired, Action("answer")])
    (run,) = world.store.live_runs()
    assert run.run_class in (RunClass.JUDGED, RunClass.UNRESOLVED)
    assert run.class_reason != "expired"


def test_thumbs_down_on_a_run_that_is_merged_counts_for_the_one_it_is_merged_into() -> None:
    unlikely = grading(sampling={"rate": 0.0, "keep": ["thumbs_down"]})
    sub = run_id("default", f"{1:032x}", f"{2:016x}")
    records: list[Record] = [
        agent(0, 1, 0, "sub"),
        model(0, 2, 1, "refunded"),
        Feedback("default", f"{1:032x}", "f", -1.0, sub, received_ns=T0),
        agent(0, 0, None, "a"),
        model(0, 3, 0, "done"),
    ]
    apart = [Action("arrive", records=(0, 1), seconds=120), Action("arrive", records=(2,)), Action("arrive", records=(3, 4))]
    (run,) = run_world(unlikely, records, apart).store.live_runs()
    assert (run.run.place.cohort.agent, run.sampling.plan) == ("a", "keep:thumbs_down")
    assert_schedule_changes_nothing(records, apart, unlikely)


def test_a_log_record_that_comes_late_makes_a_new_version_and_has_a_changed_transcript_judged_again() -> None:
    said = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    records: list[Record] = [
        *a_judged_run(),
        span(0, 4, 0, name="chat m", start=T0, end=T0 + SECOND, **said),
        log_record(0, 4, "gen_ai.choice", {"message": {"content": "Let me look it up."}}, received=T0 + 3600 * SECOND),
    ]
    late = [Action("arrive", records=(0, 1, 2, 3), seconds=3600), Action("answer"), Action("arrive", records=(4,), seconds=60)]
    world = run_world(GRADING, records, [*late, Action("answer")])
    (run,) = world.store.live_runs()
    assert run.transcript is not None
    assert "Let me look it up." in run.transcript.body
    judged = {judgment.transcript_hash for judgments in world.store.judgments.values() for judgment in judgments.values()}
    assert len(judged) == 2
    assert run.transcript.hash in judged
    assert_schedule_changes_nothing(records, [*late, Action("answer")])


def test_log_records_without_their_span_make_no_run_and_wait_for_it() -> None:
    records: list[Record] = [log_record(0, 2, "gen_ai.choice", {"message": {"content": "refunded"}}), *a_judged_run()[:1]]
    silent = span(0, 2, 0, name="chat m", **{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    early = [Action("arrive", records=(0,), seconds=90_000), Action("arrive", records=(1, 2))]
    assert run_world(GRADING, records, early[:1]).store.live_runs() == []
    (run,) = run_world(GRADING, [*records, silent], early).store.live_runs()
    assert run.run.answer == "refunded"
    assert_schedule_changes_nothing([*records, silent], early)


def test_an_evaluation_by_others_is_no_judgment_and_a_bad_one_has_the_run_judged() -> None:
    unlikely = grading(sampling={"rate": 0.0, "keep": ["thumbs_down"]})
    said = {"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.label": "fail"}
    records: list[Record] = [
        agent(0, 0, None, "a"),
        model(0, 2, 0, "refunded"),
        log_record(0, 2, "gen_ai.evaluation.result", received=T0 + 3600 * SECOND, **said),
    ]
    late = [Action("arrive", records=(0, 1), seconds=3600), Action("arrive", records=(2,), seconds=60)]
    world = run_world(unlikely, records, late)
    (run,) = world.store.live_runs()
    assert run.sampling.plan == "keep:thumbs_down"
    stored = [judgment for judgments in world.store.judgments.values() for judgment in judgments.values()]
    assert stored
    assert {judgment.dimension for judgment in stored} == {one.name for one in unlikely.judged}
    assert_schedule_changes_nothing(records, late, unlikely)


def test_feedback_on_a_span_reaches_the_run_that_the_span_is_part_of_and_no_other_also_hours_later() -> None:
    unlikely = grading(sampling={"rate": 0.0, "keep": ["thumbs_down"]})
    spans: list[Record] = [agent(0, 0, 50, "a"), model(0, 2, 0, "refunded"), agent(0, 1, 50, "b"), model(0, 3, 1, "sorry")]
    said = Feedback("default", f"{1:032x}", "f", -1.0, received_ns=T0 + 5 * 3600 * SECOND, span_id=f"{4:016x}")
    records = [*spans, said]
    late = [Action("arrive", records=(0, 1, 2, 3), seconds=5 * 3600), Action("arrive", records=(4,), seconds=60)]
    plans = {run.run.place.cohort.agent: run.sampling.plan for run in run_world(unlikely, records, late).store.live_runs()}
    assert plans == {"a": "rate:0:1", "b": "keep:thumbs_down"}
    assert_schedule_changes_nothing(records, late, unlikely)
    merged = [*records, agent(0, 50, None, "whole", start=T0 - SECOND)]
    (run,) = run_world(unlikely, merged, [*late, Action("arrive", records=(5,))]).store.live_runs()
    assert (run.run.place.cohort.agent, run.sampling.plan, run.feedback) == ("whole", "keep:thumbs_down", ("f",))
    assert_schedule_changes_nothing(merged, [*late, Action("arrive", records=(5,))], unlikely)


def test_thumbs_down_has_a_run_judged_with_probability_one() -> None:
    unlikely = grading(sampling={"rate": 0.0, "keep": ["thumbs_down"]})
    spans: list[Record] = [agent(0, 0, None, "a"), model(0, 2, 0, "refunded")]
    (before,) = run_world(unlikely, spans, in_order(spans)).store.live_runs()
    assert (before.run_class, before.sampling.inclusion_probability) == (RunClass.UNSAMPLED, 0.0)
    with_feedback = [*spans, Feedback(project="default", trace_id=f"{1:032x}", id="f", value=-1.0, received_ns=T0)]
    late = [Action("arrive", records=(0, 1), seconds=3600), Action("arrive", records=(2,))]
    (after,) = run_world(unlikely, with_feedback, late).store.live_runs()
    assert after.sampling.sampled
    assert after.sampling.inclusion_probability == 1.0
    assert after.run_class is not RunClass.UNSAMPLED
    assert_schedule_changes_nothing(with_feedback, late, unlikely)
