"""Every place that shows a rate shows the four outcomes, coverage, both bounds, n and effective n with it (scoring, section 1)."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console, RenderableType

from pipeline.apps import show, show_quality
from pipeline.apps.pages.render import page
from pipeline.apps.window_lines import lines_of
from pipeline.model.quality import QualitySpec
from pipeline.model.result import Kind, Outcome
from pipeline.model.run import Cohort
from pipeline.model.time import MINUTE, SECOND
from pipeline.model.window import GateState, Series, Sums, Trip, Window
from pipeline.runtime.evaluations import line_of
from pipeline.stages import alert
from pipeline.stages.evaluate import evaluate
from pipeline.stages.gate import FloorGate
from pipeline.stages.gate_windows import read_window
from pipeline.stages.window import MinuteRow, fold, window
from sinks.clickhouse.board import Accounting

ROOT = Path(__file__).parents[3]
COHORT = Cohort("shop", "1", "production")
SERIES = Series("p", COHORT, "verdict", Kind.VERDICT, "c")
PASS, FAIL, UNKNOWN, BROKEN = Outcome.PASS, Outcome.FAIL, Outcome.INSUFFICIENT_EVIDENCE, Outcome.GRADER_ERROR
# At π 0.5 six passed, three failed, two lack evidence and a grader broke; at π 1 four failed, and one is pending. Σw is 12 + 6 + 4 of the
# decided and 6 + 1 of the rest; passes are 12 of 22, in all 12 of 29 to 19 of 29. (Σw)² / Σw² = 22² / (9·4 + 4) = 12.1.
SUMS: Sums = fold(
    [MinuteRow(one, 2.0, 4, 1) for one in [*[PASS] * 6, *[FAIL] * 3, *[UNKNOWN] * 2, BROKEN]]
    + [MinuteRow(one, 1.0, 4, 1) for one in [*[FAIL] * 4, None]]
)
COUNTS = {"pass": 6, "fail": 7, "insufficient_evidence": 2, "grader_error": 1, "pending": 1}
SHARES = {"rate": 12 / 22, "coverage": 22 / 29, "if_undecided_fail": 12 / 29, "if_undecided_pass": 19 / 29}
N, N_EFFECTIVE = 13, 12.1
WINDOW: Window = window(SERIES, 100 * MINUTE, 5 * MINUTE, SUMS)
EVALUATION = evaluate("p", COHORT, 100 * MINUTE, 5 * MINUTE, {SERIES: [SUMS]}, QualitySpec())
GATE = FloorGate(name="floor", kind="floor", raise_below=0.8, clear_above=0.9, min_n=1, min_n_effective=1, min_coverage=0.1)


def plain(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def printed(what: RenderableType) -> str:
    console = Console(width=100_000, file=io.StringIO(), markup=False, emoji=False, highlight=False)
    console.print(what)
    out = console.file
    assert isinstance(out, io.StringIO)
    return out.getvalue()


def fired() -> Trip:
    _, trips = read_window(GATE, GateState("p", "floor", COHORT), WINDOW, SECOND)
    (trip,) = trips
    return trip


def state() -> GateState:
    return read_window(GATE, GateState("p", "floor", COHORT), WINDOW, SECOND)[0]


def status_page(**shown: Any) -> str:
    nothing: dict[str, Any] = {"runs": [], "firing": [], "quiet": [], "trips": [], "windows": [], "everything": True}
    accounting = Accounting(0, 0, 0, 0, {}, 0, 0)
    html = page("status.html", project="p", accounting=accounting, **(nothing | shown))
    return re.sub(r"<[^>]+>", "", html)


IN_WORDS: dict[str, Callable[[], str]] = {
    "tracegrade windows": lambda: printed(show_quality.windows(plain(lines_of([WINDOW])))),
    "tracegrade quality list": lambda: printed(show_quality.evaluations(plain([line_of(EVALUATION)]))),
    "tracegrade quality show": lambda: printed(show_quality.evaluation(plain(EVALUATION))),
    "why a gate tripped, in tracegrade run": lambda: printed(show.trips(plain([fired()]))),
    "why a gate tripped, in an alert": lambda: str(json.loads(alert.notifications(fired(), ["pager"])[0].body)["why"]),
    "why a gate fires, in its state": lambda: state().why,
    "status page, gates": lambda: status_page(firing=[state()]),
    "status page, what gates said": lambda: status_page(trips=[fired()]),
    "status page, windows": lambda: status_page(windows=lines_of([WINDOW])),
}


@pytest.mark.parametrize("place", IN_WORDS)
def test_a_rate_in_words_is_whole(place: str) -> None:
    told = " ".join(IN_WORDS[place]().split())
    for name, count in COUNTS.items():
        assert f"{count} {name}" in told
    for value in SHARES.values():
        assert f"{value:.4g}" in told
    assert f"coverage {SHARES['coverage']:.4g}" in told
    assert f"{SHARES['if_undecided_fail']:.4g} if the undecided fail, {SHARES['if_undecided_pass']:.4g} if they pass" in told
    assert f"n {N}, effective n {N_EFFECTIVE:.4g}" in told


@pytest.mark.parametrize("place", ["tracegrade windows", "tracegrade quality list"])
def test_windows_that_overlap_say_so(place: str) -> None:
    """A window of five minutes begins every minute."""
    assert "Windows of 5 min start 1 min apart and overlap: a run is in up to 5 of them." in " ".join(IN_WORDS[place]().split())


IN_JSON: dict[str, Callable[[], Any]] = {
    "/api/windows": lambda: plain(lines_of([WINDOW]))[0]["rate"],
    "/api/quality": lambda: plain(line_of(EVALUATION))["rate"],
    "/api/quality/{id}": lambda: plain(EVALUATION)["rates"]["pass"],
}


@pytest.mark.parametrize("place", IN_JSON)
def test_a_rate_in_json_is_whole(place: str) -> None:
    told = IN_JSON[place]()
    names = {"pass": "passed", "fail": "failed"}
    assert {name: told[names.get(name, name)] for name in COUNTS} == COUNTS
    assert {name: told[name] for name in SHARES} == pytest.approx(SHARES)
    assert (told["decided"], told["n_effective"]) == (N, pytest.approx(N_EFFECTIVE))
    assert 0 <= told["low"] < told["rate"] < told["high"] <= 1


def test_where_nothing_is_decided_no_number_stands_for_the_rate() -> None:
    undecided = window(SERIES, 0, 5 * MINUTE, fold([MinuteRow(UNKNOWN, 1.0, 4, 1)]))
    told = printed(show_quality.windows(plain(lines_of([undecided]))))
    assert "no run is decided; 0 pass, 0 fail, 1 insufficient_evidence" in told
    nothing = evaluate("p", COHORT, 0, 5 * MINUTE, {SERIES: [fold([MinuteRow(UNKNOWN, 1.0, 4, 1)])]}, QualitySpec())
    for shown in (show_quality.evaluations(plain([line_of(nothing)])), show_quality.evaluation(plain(nothing))):
        assert "– (no run is decided)" in printed(shown)


SCORED: dict[str, Callable[[], str]] = {name: IN_WORDS[name] for name in ("tracegrade quality list", "tracegrade quality show")}


@pytest.mark.parametrize("place", SCORED)
def test_a_score_with_something_imputed_is_marked_and_names_it_and_has_both_bounds_beside_it(place: str) -> None:
    quality = EVALUATION.quality
    assert quality is not None
    assert quality.imputed == ("safety", "judge", "schema", "latency", "cost")
    told = " ".join(SCORED[place]().split())
    assert f"{quality.score}* ({float(quality.lower):.4g} to {float(quality.upper):.4g})" in told
    assert "safety, judge, schema, latency, cost" in told


def test_no_query_shows_an_unweighted_mean_of_what_may_be_sampled() -> None:
    """Means come from weighted sums; ``avg`` knows no weights."""
    told = [*(ROOT / "sinks").rglob("*.py"), *(ROOT / "deploy").rglob("*.json"), *(ROOT / "pipeline").rglob("*.py")]
    assert [path.name for path in told if re.search(r"\bavg\w*\(", path.read_text(encoding="utf-8"))] == []


def test_the_dashboard_shows_the_same_of_each_window() -> None:
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "dashboards" / "tracegrade.json").read_text(encoding="utf-8"))
    (panel,) = (one for one in dashboard["panels"] if one["title"].startswith("Windows"))
    sql = panel["targets"][0]["rawSql"]
    for column in (
        *COUNTS,
        "rate_low",
        "rate_high",
        "rate_if_undecided_fail",
        "rate_if_undecided_pass",
        "coverage",
        "decided",
        "n_effective",
    ):
        assert re.search(rf"\b{column}\b", sql), column
