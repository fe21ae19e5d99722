"""The page of a run whose facts are not what they were: retracted, expired, in an earlier version, pending."""

import re
from collections.abc import Iterator

import pytest
from builders import T0
from unit.clickhouse.records import a_result, a_run, a_run_version, a_version, opened, retract

from pipeline.apps.pages.run_page import run_page
from pipeline.config.store import StoreSettings
from pipeline.model.result import Kind, Outcome, Verdict
from pipeline.model.run import RunClass
from pipeline.model.step import Step, StepKind, ToolCall
from pipeline.model.time import SECOND
from pipeline.stages.outline import Entry
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.run_detail import run_detail
from sinks.clickhouse.run_history import at_version, history
from sinks.clickhouse.writer import write


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClickHouse]:
    with opened(StoreSettings(path=tmp_path_factory.mktemp("store"))) as engine:
        yield engine


def text(page: str) -> str:
    """What a page says, without its tags, its white space folded."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def shown(database: ClickHouse, project: str, run_id: str, *entries: Entry, version: int = 0) -> str:
    latest = run_detail(database, project, run_id)
    detail = at_version(database, project, latest, version) if version else latest
    return text(run_page(project, latest, detail, history(database, project, detail), entries, (), 1, ""))


def test_a_retracted_run_names_its_heir_and_claims_no_verdict(database: ClickHouse) -> None:
    gone, heir = a_run("retracted"), a_run("retracted", head="00000000000000b1")
    write(database, [a_version(a_run_version(heir, 8), retractions=(retract(gone, heir, 8),), facts=2)])
    said = shown(database, "retracted", gone.run_id)
    assert "This run was retracted" in said
    assert heir.run_id[:8] in said
    assert " pending " not in said
    assert "Its steps are those of the run that it was merged into." in said


def test_where_spans_expired_what_was_kept_of_the_calls_stands_in_their_place(database: ClickHouse) -> None:
    run = a_run("expired", tool_calls=(ToolCall("refund", result="refunded 12.50"), ToolCall("mail", error="not executed")))
    write(database, [a_version(a_run_version(run))])
    said = shown(database, "expired", run.run_id)
    assert "The spans of this run are not stored any more" in said
    assert "refunded 12.50" in said
    assert "Asked for, and never seen to be executed mail" in said


def test_an_undecided_score_shows_its_bounds_and_no_number(database: ClickHouse) -> None:
    run = a_run("undecided")
    results = (
        a_result("tone", Kind.JUDGED, None, lower=1, upper=5),
        a_result("loops", outcome=Outcome.INSUFFICIENT_EVIDENCE, lower=0, upper=3, reason="calls_not_captured: no content"),
    )
    version = a_run_version(run, 4, *results, verdict=Verdict(None), run_class=RunClass.PENDING)
    write(database, [a_version(version)])
    said = shown(database, "undecided", run.run_id)
    assert "tone pending 1 to 5 judged" in said
    assert "loops insufficient evidence 0 to 3 code" in said


def test_an_earlier_version_says_that_it_does_not_count(database: ClickHouse) -> None:
    run = a_run("earlier")
    for facts, outcome in ((1, Outcome.FAIL), (2, Outcome.PASS)):
        version = a_run_version(run, facts * 4, a_result("tone", outcome=outcome), verdict=Verdict(outcome, f"as of {facts}"))
        write(database, [a_version(version, facts=facts)])
    now, before = shown(database, "earlier", run.run_id), shown(database, "earlier", run.run_id, version=4)
    assert "as of 2" in now.split("Scores")[0]
    assert "superseded" not in now.split("Versions A later")[0]
    assert "This is version 4, which later facts superseded. The version that counts is 8." in before
    assert "as of 1" in before.split("Scores")[0]
    assert "tone fail" in before
    assert "tone pass" not in before


def test_steps_deeper_than_can_be_drawn_say_how_deep_they_are(database: ClickHouse) -> None:
    run = a_run("deep")
    write(database, [a_version(a_run_version(run))])
    entries = [
        Entry(Step(f"{depth:016x}", "", f"level {depth}", T0, T0 + SECOND, T0, kind=StepKind.CHAIN), depth, 11 - depth, "")
        for depth in range(12)
    ]
    said = shown(database, "deep", run.run_id, *entries)
    assert "12 wrapper level 11 level 12 1.0 s" in said
    assert "9 wrapper level 8 3 steps below 1.0 s" in said
