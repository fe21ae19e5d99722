"""What a terminal shows: at every width the verdict and its reason, and nothing in a text is obeyed."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from pipeline.apps import show, show_run
from pipeline.errors import ConfigurationError

NOTHING = {"received": 0, "judged": 0, "unsampled": 0, "pending": 0, "unresolved": {}, "open_traces": 0, "not_an_agent_run": 0}
WIDTHS = (60, 80, 100, 120, 180)


def a_row(**changes: Any) -> dict[str, Any]:
    cohort = {"agent": "support-agent", "version": "unknown", "environment": "unknown", **changes.pop("cohort", {})}
    return {
        "run_id": "0123456789abcdef0123456789abcdef",
        "trace_id": "f" * 32,
        "cohort": cohort,
        "steps": 7,
        "tools": ["lookup_order"],
        "failed_calls": 0,
        "verdict": "insufficient_evidence",
        "reason": "execution_not_captured: answer_present",
        "run_class": "judged",
        "class_reason": "",
        "converted": False,
        "start_ns": 1_790_000_000 * 10**9,
        "end_ns": 1_790_000_001 * 10**9,
        "dialects": ["genai"],
        "cost_usd": None,
        **changes,
    }


def a_detail(**changes: Any) -> dict[str, Any]:
    return {
        "line": a_row(),
        "live": True,
        "merged_into": "",
        "request": "Where is it?",
        "answer": "Here.",
        "error": None,
        "ended": "answer",
        "agents": [],
        "parts": [],
        "models": ["m"],
        "model_calls": 1,
        "input_tokens": None,
        "output_tokens": 3,
        "cost_usd": None,
        "cost_unknown": "price_unknown: the price table has no m",
        "cost_prices": "2026-11-30-0badcafe",
        "reported_cost_usd": None,
        "task_kind": "support-agent",
        "retries": 0,
        "hand_offs": [],
        "revision": "",
        "flags": [],
        "sampling_plan": "rate:1:1",
        "inclusion_probability": 1.0,
        "tool_calls": [],
        "results": [],
        "feedback": [],
        "trips": [],
        **changes,
    }


def lines(what: RenderableType, width: int = 100) -> list[str]:
    into = io.StringIO()
    console = show.console()
    console.file = into
    console.width = width
    console.print(what)
    return into.getvalue().splitlines()


def words(shown: list[str]) -> str:
    """What was shown, without the breaks of lines."""
    return "".join("".join(shown).split())


@pytest.mark.parametrize("width", WIDTHS)
def test_no_width_cuts_a_verdict_or_a_reason(width: int) -> None:
    reason = "refund_after_lookup: issue_refund was called before lookup_order had succeeded"
    rows = [
        a_row(),
        a_row(verdict="fail", reason=reason, tools=[f"a_tool_with_a_long_name_{index}" for index in range(9)], failed_calls=3),
    ]
    shown = lines(show.scoreboard(rows, NOTHING, width), width)
    assert max(map(len, shown)) <= width
    head = next(line for line in shown if "verdict" in line)
    columns = head.index("verdict"), head.index("first reason") if "first reason" in head else head.index("reason")
    verdicts = words([line[columns[0] : columns[1]] for line in shown])
    assert "insufficient_evidence" in verdicts
    assert "fail" in verdicts
    assert words([reason]) in words([line[columns[1] :] for line in shown])


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_row_takes_few_lines(width: int) -> None:
    shown = lines(show.scoreboard([a_row(verdict="pass", reason="composite: 97.5 meets the bar of 75")], NOTHING, width), width)
    assert len(shown) <= 3 + (3 if width < 100 else 2) + 2


@given(
    st.lists(
        st.builds(
            a_row,
            reason=st.text(max_size=300),
            tools=st.lists(st.text(max_size=50), max_size=5),
            failed_calls=st.integers(0, 9),
            cohort=st.builds(dict, agent=st.text(max_size=300)),
        )
    ),
    st.integers(60, 200),
)
def test_any_text_fits_any_width(rows: list[dict[str, Any]], width: int) -> None:
    for line in lines(show.scoreboard(rows, NOTHING, width), width):
        assert Console().render_str(line, markup=False, emoji=False).cell_len <= width


@pytest.mark.parametrize("text", ["[red]", "[/]", "[/red]", "[bold", "\\[x]", "[link=http://x]y[/link]", ":warning:", "a\\"])
def test_markup_is_not_interpreted(text: str) -> None:
    row = a_row(cohort={"agent": text, "version": text}, tools=[text], reason=text)
    trip = {"gate": text, "cohort": row["cohort"], "transition": "fired", "why": text}
    result = {
        "dimension": text,
        "kind": "code",
        "outcome": "fail",
        "value": 0.0,
        "lower": 0.0,
        "upper": 0.0,
        "authority": text,
        "reason": text,
        "evidence": text,
    }
    call = {"name": text, "arguments": {text: text}, "raw_arguments": "", "result": text, "error": None}
    detail = a_detail(line=row, request=text, answer=text, tool_calls=[call], results=[result], trips=[trip], flags=[text])
    for what, times in ((show.scoreboard([row], NOTHING, 180), 4), (show.trips([trip]), 3), (show_run.run(detail), 12)):
        assert words(lines(what, 180)).count(words([text])) >= times


def test_what_is_unknown_is_not_a_number() -> None:
    undecided = {
        "dimension": "loops",
        "kind": "code",
        "outcome": "insufficient_evidence",
        "value": None,
        "lower": 0.0,
        "upper": 1.0,
        "authority": None,
        "reason": "calls_not_captured",
        "evidence": "",
    }
    pending = {
        **undecided,
        "dimension": "tone",
        "kind": "judged",
        "outcome": None,
        "lower": None,
        "upper": None,
        "reason": "pending",
    }
    shown = lines(show_run.run(a_detail(answer=None, results=[pending, undecided], line=a_row(end_ns=0))))
    assert any(line.split()[:4] == ["loops", "insufficient_evidence", "0", "to"] for line in shown)
    assert any(line.split()[:3] == ["tone", "pending", "–"] for line in shown)
    assert any("– tokens in, 3 out" in line for line in shown)
    assert any(line.endswith("to – UTC") for line in map(str.rstrip, shown))
    assert shown[shown.index(next(line for line in shown if line.startswith("Answer"))) + 1].strip() == "–"


def test_verdict_and_composite_stand_above_what_they_are_made_of() -> None:
    plain = {
        "kind": "code",
        "outcome": "pass",
        "value": 1.0,
        "lower": 1.0,
        "upper": 1.0,
        "authority": None,
        "reason": "",
        "evidence": "",
    }
    shown = lines(
        show_run.run(a_detail(results=[{**plain, "dimension": name} for name in ("loops", "composite", "tone", "verdict")]))
    )
    assert [line.split()[0] for line in shown if line.split()[1:2] == ["pass"]] == ["verdict", "composite", "loops", "tone"]


def test_the_commit_that_graded_a_run_is_shown() -> None:
    assert "gradedbycodec0ffee" in words(lines(show_run.run(a_detail(revision="c0ffee"))))


def test_a_retracted_run_says_where_it_went() -> None:
    assert any("merged into abc" in line for line in lines(show_run.run(a_detail(live=False, merged_into="abc"))))


def test_feedback_and_failed_calls_are_shown() -> None:
    call = {"name": "refund", "arguments": None, "raw_arguments": "{broken", "result": None, "error": "no such order"}
    told = words(lines(show_run.run(a_detail(tool_calls=[call], feedback=[{"value": -1.0, "author": "", "comment": "wrong"}]))))
    assert "refund{brokenfailed:nosuchorder" in told
    assert "Feedback-1by–:wrong" in told


def a_part(path: str, **changes: Any) -> dict[str, Any]:
    usage = {"input": 7, "output": None}
    fields = {"path": path, "agent": path.rpartition("/")[2] or "desk", "steps": 3, "model_calls": 1, "tool_calls": 1}
    return {**fields, "failed_calls": 0, "usage": usage, **changes}


def test_of_several_agents_each_is_shown_with_its_calls_and_tokens() -> None:
    calls = [
        {"name": name, "agent": path, "arguments": None, "result": "done", "error": None}
        for name, path in (("lookup", ""), ("search", "researcher"), ("grade", "researcher/critic"), ("write", "writer"))
    ]
    parts = [a_part(""), a_part("researcher", failed_calls=1), a_part("researcher/critic"), a_part("writer")]
    whole = words(lines(show_run.run(a_detail(parts=parts, tool_calls=calls))))
    assert "researcher/criticcritic3117tokensin,–out" in whole
    assert "researcherresearcher311(1failed)7tokensin,–out" in whole
    assert "–lookup" in whole
    assert "researcher/criticgrade" in whole
    one = words(lines(show_run.part(show_run.of_part(a_detail(parts=parts, tool_calls=calls), "researcher"))))
    assert "researchersearch" in one
    assert "researcher/criticgrade" in one
    assert "writer" not in one
    assert "lookup" not in one
    with pytest.raises(
        ConfigurationError, match="has no sub-agent 'nobody'; those it has: 'researcher', 'researcher/critic', 'writer'"
    ):
        show_run.of_part(a_detail(parts=parts), "nobody")


def test_the_accounting_is_an_identity_with_its_reasons() -> None:
    counts = {
        **NOTHING,
        "received": 9,
        "judged": 4,
        "unsampled": 1,
        "pending": 1,
        "unresolved": {"no_judge": 2, "incomplete": 1},
        "open_traces": 1,
    }
    shown = lines(show.accounting_line(counts), 180)
    assert [line.rstrip() for line in shown] == [
        "9 runs received = 4 judged + 1 unsampled + 3 unresolved (incomplete 1, no_judge 2) + 1 pending",
        "1 trace open; 0 traces held no agent's run",
    ]


def test_where_only_some_runs_are_listed_the_accounting_says_that_it_is_of_all() -> None:
    counts = {**NOTHING, "received": 9, "judged": 9}
    of_all = "9 runs received = 9 judged + 0 unsampled + 0 unresolved + 0 pending"
    told = [line.rstrip() for line in lines(show.scoreboard([], counts, 100, agent="nosuch", flag="slow"))]
    assert told[:3] == [
        "No runs of agent 'nosuch' with flag 'slow' here.",
        "Not only runs of agent 'nosuch' with flag 'slow', but all of the project:",
        of_all,
    ]
    listed = [line.rstrip() for line in lines(show.scoreboard([a_row()], counts, 100, agent="support-agent"))]
    assert listed[listed.index(of_all) - 1] == "Not only runs of agent 'support-agent', but all of the project:"
    assert not any("Not only" in line for line in lines(show.scoreboard([a_row()], counts, 100)))


def test_an_empty_store_says_so() -> None:
    assert lines(show.scoreboard([], NOTHING, 100))[0].strip() == "No runs here."


def test_a_pipe_is_as_wide_as_the_table_needs_and_a_variable_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert show.console().width == show.PIPED
    monkeypatch.setenv("COLUMNS", "77")
    assert show.console().width == 77


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (None, "–"),
        ("0", "$0.0000"),
        ("0.003015", "$0.0030"),
        ("0.00000015", "<$0.0001"),
        ("12.5", "$12.5000"),
        ("12345.6", "$12,346"),
    ],
)
def test_the_scoreboard_has_the_cost_and_unknown_is_no_0(cost: str | None, shown: str) -> None:
    _, *rows = lines(show.scoreboard([a_row(cost_usd=cost)], NOTHING, 120), 120)
    assert any(shown in row.split() for row in rows)


def test_a_run_shows_its_cost_to_the_last_digit_with_its_prices_or_why_it_is_unknown() -> None:
    known = "\n".join(lines(show_run.run(a_detail(cost_usd="0.00000015", reported_cost_usd=0.25)), 200))
    assert "0.00000015 USD, by prices 2026-11-30-0badcafe; the senders report 0.25 USD" in known
    unknown = "\n".join(lines(show_run.run(a_detail()), 200))
    assert "unknown: price_unknown: the price table has no m" in unknown


def test_a_run_shows_what_was_made_again_its_kind_of_task_and_who_handed_over_to_whom() -> None:
    handed = [{"source": "desk", "target": "refunds"}, {"source": "refunds", "target": "desk"}]
    shown = "\n".join(lines(show_run.run(a_detail(model_calls=3, retries=2, task_kind="refund", hand_offs=handed)), 200))
    assert "3 calls (2 made again)" in shown
    assert "desk → refunds, refunds → desk" in shown
    assert any(line.split() == ["task", "refund"] for line in shown.splitlines())
