"""The page of a run whose facts are not what they were: retracted, expired, in an earlier version, pending."""

import re
from collections.abc import Iterator
from decimal import Decimal

import msgspec
import pytest
from builders import T0
from unit.clickhouse.records import a_result, a_run, a_run_version, a_version, opened, retract

from pipeline.apps.pages.run_page import run_page
from pipeline.config.store import StoreSettings
from pipeline.model.result import Judgment, Kind, Outcome, Verdict
from pipeline.model.run import RunClass
from pipeline.model.spending import Billed, Cost
from pipeline.model.step import Step, StepKind, ToolCall, Usage
from pipeline.model.time import SECOND
from pipeline.scorers.prices import PricesSettings, PriceTable
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


PRICES = PriceTable(PricesSettings.model_validate({"models": {"m": {"input": 10, "output": 30}}}))


def shown(database: ClickHouse, project: str, run_id: str, *entries: Entry, version: int = 0) -> str:
    latest = run_detail(database, project, run_id)
    detail = at_version(database, project, latest, version) if version else latest
    return text(run_page(project, latest, detail, history(database, project, detail), entries, (), PRICES, 1, "", ""))


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


def test_a_step_costs_what_the_price_table_says_and_what_its_sender_says_is_the_sender_s(database: ClickHouse) -> None:
    run = a_run("priced")
    write(database, [a_version(a_run_version(run, cost=Cost(Decimal("0.0042"), prices="2026-01-01-old")))])
    usage = Usage(input=120, output=100, cost_usd=0.5)
    known, unknown, told = (
        Step(f"{number:016x}", "", "call", T0, T0 + SECOND, T0, kind=StepKind.MODEL, model=model, usage=usage)
        for number, model in enumerate(("m", "nobody-knows", "m"))
    )
    entries = [
        Entry(known, 0, 0, "", Billed("a", "m", usage)),  # 120 × 10 and 100 × 30 dollars a million
        Entry(unknown, 0, 0, "", Billed("b", "nobody-knows", usage)),
        Entry(told, 0, 0, ""),  # an agent above it, or a call below, is what counts
    ]
    said = shown(database, "priced", run.run_id, *entries).split("1 model m")[1]
    first, second, third = re.split(r"\d model", said.split("Versions A later")[0])
    assert first.startswith(" 120 tokens in, 100 out · $0.0042 by prices · $0.50 as its sender says · 1.0 s")
    assert second.startswith(" nobody-knows 120 tokens in, 100 out · cost unknown · $0.50 as its sender says · 1.0 s")
    assert third.startswith(" m 120 tokens in, 100 out · $0.50 as its sender says · 1.0 s")
    assert (
        f"What a step cost is by prices {PRICES.version}, which are in force now; the run’s own cost is by 2026-01-01-old."
        in shown(database, "priced", run.run_id, *entries)
    )


def test_the_commit_of_the_code_stands_beside_the_contracts(database: ClickHouse) -> None:
    run = a_run("revised")
    write(database, [msgspec.structs.replace(a_version(a_run_version(run, 4, a_result("tone"))), revision="c0ffee-dirty")])
    assert "What each score was made under, by code c0ffee-dirty ." in shown(database, "revised", run.run_id)
    (row,) = database.query("SELECT DISTINCT revision FROM results WHERE run_id = {run:String}", {"run": run.run_id})
    assert row == {"revision": "c0ffee-dirty"}
    before = a_run("unrevised")
    write(database, [a_version(a_run_version(before, 4, a_result("tone")))])
    assert "by code that nobody knows ." in shown(database, "unrevised", before.run_id)


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


def test_a_judgment_shows_what_its_judge_has_earned_and_every_page_that_it_decides_by_choice(database: ClickHouse) -> None:
    run = a_run("earned")
    said = Judgment("default", run.trace_id, run.run_id, 4, "t", "c", "tone", Outcome.PASS, 4.0, model="m-1, m-2", votes=2)
    result = a_result("tone", Kind.JUDGED, Outcome.PASS, value=4, lower=4, upper=4, authority="assisted", contract="c")
    write(database, [a_version(a_run_version(run, 4, result))])
    latest = msgspec.structs.replace(run_detail(database, "earned", run.run_id), judgments=(said,))
    told = text(run_page("earned", latest, latest, history(database, "earned", latest), (), (), PRICES, 1, "", "By choice."))
    assert "judged, assisted" in told
    assert "pass score 4 by m-1, m-2, assisted, 2 votes" in told
    assert "By choice." in told
    other = msgspec.structs.replace(latest, judgments=(msgspec.structs.replace(said, contract="another"),))
    told = text(run_page("earned", other, other, history(database, "earned", latest), (), (), PRICES, 1, "", ""))
    assert "pass score 4 by m-1, m-2, 2 votes" in told, "what was earned under one contract is not said of another"
    assert "By choice." not in told
