"""Authority on every judged score, wherever it is stored or shown, and what ``judge.uncalibrated`` lets it do (scoring, section 6)."""

import io
from collections.abc import Mapping
from typing import Any, Literal, cast

import msgspec
import pytest
from aiohttp.test_utils import make_mocked_request
from builders import T0
from grades_builders import stored
from judge_builders import SUPPORT, refunded
from rich.console import Console

from collectors.otlp.keys import Keys
from pipeline.apps import show_quality
from pipeline.apps.choice import print_choice
from pipeline.apps.page_routes import page_routes
from pipeline.apps.show_verdict import verdict
from pipeline.apps.window_lines import lines_of
from pipeline.config.grading import grading_of
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.judges.calibration import Calibration
from pipeline.judges.settings import JudgeSettings
from pipeline.judges.transcript import render
from pipeline.model.result import Authority, Judgment, Kind, Outcome, Result
from pipeline.model.run import Cohort
from pipeline.model.time import MINUTE
from pipeline.model.window import Series, Window
from pipeline.scorers.prices import PriceTable
from pipeline.stages.grade import grade
from pipeline.stages.verdict import structured_verdict
from pipeline.stages.window import MinuteRow, fold, window
from sinks.clickhouse.board import Accounting
from sinks.clickhouse.run_list import Choices, Counts
from sinks.clickhouse.store import Store

BAD = {"correctness": 1.0, "completeness": 1.0, "policy_and_safety": 1.0, "format": 1.0, "tone": 1.0}


def graded(scores: Mapping[str, float | None], **judge: Any) -> dict[str, Result]:
    """The results of a run of which the judge said this: None is no score."""
    settings = TracegradeSettings(judge=JudgeSettings(base_url="http://127.0.0.1:1/v1", model="m", **judge))
    grading, run = grading_of(settings)("default", "any"), refunded()
    transcript = render(run, grading.transcript_budget)
    contracts = {one.name: one.contract for one in grading.judged}
    judgments = [
        Judgment(
            project=run.project,
            trace_id=run.trace_id,
            run_id=run.run_id,
            run_version=4,
            transcript_hash=transcript.hash,
            contract=contracts[name],
            dimension=name,
            outcome=Outcome.GRADER_ERROR if score is None else Outcome.PASS if score > 3 else Outcome.FAIL,
            score=score,
            unresolved="grader_error" if score is None else "",
        )
        for name, score in scores.items()
    ]
    results = grade(run, 1, judgments, (), None, grading, T0, T0).version.results
    return {one.dimension: one for one in results}


@pytest.mark.parametrize("score", [1.0, 5.0, None])
def test_every_judged_row_carries_it_with_or_without_a_score(score: float | None) -> None:
    found = graded({"tone": score})
    judged = {name: one.authority for name, one in found.items() if one.kind is Kind.JUDGED}
    assert judged == dict.fromkeys(BAD, "uncalibrated"), "the outstanding ones too"
    assert {one.authority for one in found.values() if one.kind is not Kind.JUDGED} == {""}


def test_shown_scores_decide_nothing_and_may_not_fail_a_run() -> None:
    found = graded(BAD)
    assert found["correctness"].outcome is Outcome.FAIL, "the score itself is shown"
    assert (found["composite"].value, found["composite"].lower, found["composite"].upper) == (None, 0.0, 100.0)
    assert (found["verdict"].outcome, found["verdict"].reason.split(":")[0]) == (Outcome.INSUFFICIENT_EVIDENCE, "uncalibrated")


def test_by_explicit_choice_they_do() -> None:
    found = graded(BAD, uncalibrated="decide")
    assert (found["composite"].value, found["verdict"].outcome) == (0.0, Outcome.FAIL)
    assert found["correctness"].authority == "uncalibrated", "the choice makes nothing more of it than it is"
    assert found["verdict"].contract != graded(BAD)["verdict"].contract


def test_a_structured_verdict_names_it_for_each_score_and_says_where_it_counts_by_choice() -> None:
    shown = structured_verdict(stored(SUPPORT, 5, 5, 5, 5, 5, authority="uncalibrated"))
    assert {(one.authority, one.counts) for one in shown.dimensions} == {(Authority.UNCALIBRATED, False)}
    assert "by choice" not in shown.summary
    deciding = frozenset({"alone", "assisted", "uncalibrated"})
    decided = structured_verdict(stored(SUPPORT, 5, 5, 5, 5, 5, authority="uncalibrated", deciding=deciding))
    assert {(one.authority, one.counts) for one in decided.dimensions} == {(Authority.UNCALIBRATED, True)}
    assert decided.summary.endswith(
        "The judge is uncalibrated for correctness, completeness, policy_and_safety, format, tone, and counts there by choice."
    )
    assert "by choice" not in structured_verdict(stored(SUPPORT, 5, 5, 5, 5, 5)).summary


def test_a_structured_verdict_names_every_model_of_a_panel_and_their_families() -> None:
    found = structured_verdict(stored(SUPPORT, 5, 5, 5, 5, 5, model="gpt-5, claude-haiku-4-5, llama-3.3-70b"))
    assert found.evaluator.models == ("claude-haiku-4-5", "gpt-5", "llama-3.3-70b")
    assert found.evaluator.families == ("anthropic", "meta", "openai")
    assert found.evaluator.same_family, "the agent is of one of them"


def printed(what: Any) -> str:
    console = Console(width=400, file=io.StringIO(), markup=False)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().split())


@pytest.mark.parametrize("authority", list(Authority))
def test_a_verdict_in_a_terminal_shows_it_beside_each_outcome(authority: Authority) -> None:
    told = structured_verdict(stored(SUPPORT, 5, 5, 5, 5, 5, authority=authority.value))
    shown = "" if authority in (Authority.ALONE, Authority.ASSISTED) else ", shown only"
    assert f"tone pass, {authority}{shown} 5" in printed(verdict(msgspec.to_builtins(told, str_keys=True)))


def a_window(kind: Kind, contract: str) -> Window:
    return window(Series("p", Cohort("a"), "tone", kind, contract), 0, 5 * MINUTE, fold([MinuteRow(Outcome.PASS, 1.0, 4, 1)]))


def test_windows_of_a_judged_dimension_carry_what_was_earned_under_their_contract() -> None:
    earned = Calibration({("c", "tone"): Authority.ALONE, ("d", "tone"): Authority.FROZEN})
    lines = lines_of([a_window(Kind.JUDGED, "c"), a_window(Kind.JUDGED, "d"), a_window(Kind.JUDGED, "e")], earned)
    assert [one.authority for one in lines] == ["alone", "frozen", "uncalibrated"]
    (code,) = lines_of([a_window(Kind.CODE, "c")], earned)
    assert code.authority == ""
    told = printed(show_quality.windows(msgspec.json.decode(msgspec.json.encode([*lines, code]))))
    assert [each in told for each in ("tone (alone): ", "tone (frozen): ", "tone (uncalibrated): ", "tone: ")] == [True] * 4


class Empty:
    """A store in which nothing is: whatever is asked of it is an empty list or zero."""

    def __getattr__(self, name: str) -> Any:
        return Empty()

    async def __call__(self, *_: object) -> Any:
        return []

    async def accounting(self, _project: str) -> Accounting:
        return Accounting(0, 0, 0, 0, {}, 0, 0)

    async def counts(self, *_: object) -> Counts:
        return Counts(0, 0, 0, 0, {}, {})

    async def choices(self, _project: str) -> Choices:
        return Choices((), (), (), (), ())


@pytest.mark.parametrize("path", ["/", "/runs"])
@pytest.mark.parametrize("choice", ["", "Scores decide here, by choice."])
async def test_every_page_says_where_they_decide_by_choice(choice: str, path: str) -> None:
    routes = page_routes(cast("Store", Empty()), Keys({}, "default"), PriceTable(), choice)
    (handler,) = (route.handler for route in routes if route.path == path)
    answer: Any = await cast("Any", handler)(make_mocked_request("GET", path))
    assert answer.status == 200
    assert ("by choice" in answer.text) == bool(choice)


@pytest.mark.parametrize("uncalibrated", ["show", "decide"])
def test_a_command_says_it_under_what_it_prints(
    uncalibrated: Literal["show", "decide"], capsys: pytest.CaptureFixture[str]
) -> None:
    judge = JudgeSettings(base_url="http://127.0.0.1:1/v1", model="m", uncalibrated=uncalibrated)
    print_choice(TracegradeSettings(judge=judge))
    assert ("decide here, by choice" in capsys.readouterr().out) == (uncalibrated == "decide")
