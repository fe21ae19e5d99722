"""``tracegrade judge compare``: which pairs are compared, what is refused before anything is paid, and how it reads."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from judge_builders import refunded
from run_builders import a_failure

from pipeline.apps.pair_commands import lines
from pipeline.apps.pair_file import Pair, read
from pipeline.apps.pairs import PairReport, compare_pairs
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError
from pipeline.judges.scripted import MODEL, Asked, Canned, ScriptedJudge, failing
from pipeline.judges.transcript import render
from pipeline.judges.votes import VotesInMemory
from pipeline.model.pairwise import PairOutcome, Preference
from pipeline.model.run import Run

GOOD = refunded()
LIAR = refunded(calls=(a_failure("issue_refund", {"order_id": "A-1001"}, "card expired"),), answer="Your refund is on its way.")
ELSEWHERE = refunded(request="Where is order A-1001?")


def stored(name: str, run: Run, agent: str = "support", **fields: Any) -> dict[str, Any]:
    """What is stored of a run, as far as comparing reads it."""
    transcript = render(run, 24_000)
    shown = {"transcript": transcript.body, "transcript_hash": transcript.hash, "models": ["gpt-4o"]}
    return {"line": {"run_id": name * 32, "cohort": {"agent": agent}}, **shown, **fields}


RUNS = {
    "a": stored("a", GOOD),
    "b": stored("b", LIAR),
    "c": stored("c", refunded(answer="I refunded 42.50 USD.")),
    "d": stored("d", ELSEWHERE),
    "e": stored("e", GOOD, transcript=None),
    "f": stored("f", GOOD, "judged-by-others"),
    "9": stored("9", GOOD, "judged-by-nobody"),
}


async def detail(prefix: str) -> Mapping[str, Any]:
    return RUNS[prefix[0]]


async def compared(
    *pairs: tuple[str, ...], replies: Any = (), dimension: str = "correctness", across_requests: bool = False, **judge: Any
) -> tuple[PairReport, list[Asked]]:
    async with ScriptedJudge(replies) as server:
        written = {
            "judge": {"base_url": server.url, "model": MODEL, "price": {"input_per_million": 1, "output_per_million": 1}} | judge,
            "agents": {"judged-by-others": {"rubric": "agent-output"}, "judged-by-nobody": {"rubric": None}},
        }
        settings = TracegradeSettings.model_validate(written)
        listed = [Pair(one[0], one[1], Preference(one[2]) if len(one) > 2 else None) for one in pairs]
        votes = VotesInMemory()
        report = await compare_pairs(settings, listed, dimension, detail, votes, {}, across_requests=across_requests)
        return report, server.asked


async def test_many_pairs_add_up_and_are_held_against_what_people_said() -> None:
    report, asked = await compared(("a", "b", "a"), ("b", "a", "a"), ("a", "c"), ("c", "a", "tie"))
    assert [one.judgment.outcome for one in report.pairs] == [PairOutcome.A, PairOutcome.B, PairOutcome.TIE, PairOutcome.TIE]
    assert (report.tally.pairs, report.tally.a, report.tally.b, report.tally.ties) == (4, 1, 1, 2)
    assert report.agreement is not None
    assert report.agreement.accuracy is not None
    assert (report.agreement.pairs, report.agreement.accuracy.count, report.agreement.accuracy.of) == (3, 2, 3)
    assert report.unjudged == ()
    assert (report.authority, report.contract.kind, report.contract.hash) == ("uncalibrated", "pairwise", report.contract_hash)
    assert len(asked) <= 8
    costs = [one.judgment.cost_usd for one in report.pairs]
    assert report.cost_usd == pytest.approx(sum(cost or 0 for cost in costs))


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (("a", "d"), "they answer different requests; ask with --across-requests"),
        (("a", "a"), "a and a are one run, aaaa"),
        (("a", "e"), "eeee has no transcript: "),
        (("a", "f"), "'correctness' is not judged in runs of judged-by-others; --dimension is one of accuracy, "),
        (("a", "9"), "is not judged in runs of judged-by-nobody; its rubric is null"),
    ],
)
async def test_what_cannot_be_compared_is_refused_before_anything_is_paid(pair: tuple[str, str], said: str) -> None:
    def nobody(_: Asked) -> Canned | None:
        raise AssertionError("a call was paid for")

    with pytest.raises(ConfigurationError) as refused:
        await compared(("a", "b"), pair, replies=nobody)
    assert said in str(refused.value)


async def test_rubrics_that_say_different_things_of_the_dimension_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="which say different things of completeness"):
        await compared(("a", "f"), dimension="completeness")


async def test_different_requests_are_compared_for_whoever_asks_for_it() -> None:
    report, _ = await compared(("a", "d"), across_requests=True, dimension="tone")
    assert report.tally.pairs == 1


async def test_nothing_of_a_project_that_opted_out_is_shown() -> None:
    with pytest.raises(ConfigurationError, match="opted out"):
        await compared(("a", "b"), opted_out=["default"])


async def test_a_pair_that_was_not_answered_is_in_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(_: float) -> None:
        """No wait, for nothing changes meanwhile."""

    monkeypatch.setattr("pipeline.apps.pairs.asyncio.sleep", at_once)

    def down_for_c(asked: Asked) -> Canned | None:
        return failing(503) if "I refunded 42.50 USD.\n" in asked.body["messages"][1]["content"] else None

    report, asked = await compared(("a", "b"), ("a", "c"), replies=down_for_c, concurrency=1)
    assert [(one.run_a[0], one.run_b[0]) for one in report.unjudged] == [("a", "c")]
    assert (report.tally.pairs, report.tally.a) == (1, 1)
    assert len(asked) == 2 + 4


async def test_a_day_without_money_left_is_said() -> None:
    report, asked = await compared(("a", "b"), budget={"per_day": 0.000001})
    assert report.unjudged[0].why.startswith("budget: of the ")
    assert (report.tally.pairs, report.cost_usd, asked) == (0, 0, [])


async def test_a_key_that_is_refused_is_for_a_person() -> None:
    with pytest.raises(ConfigurationError, match="401"):
        await compared(("a", "b"), replies=[failing(401)] * 2)


def shown(report: PairReport, *, kept: bool = True) -> str:
    return "\n".join(lines(msgspec.json.decode(msgspec.json.encode(report)), stored=kept))


async def test_one_pair_is_shown_with_both_replies_as_they_came() -> None:
    report, _ = await compared(("a", "b"))
    text = shown(report)
    for order, place in (("A", "FIRST"), ("B", "SECOND")):
        assert f'--- reply with {order} first\n{{"better":"{place}"' in text
        assert f"--- with {order} first: a: " in text
    assert "=== A is better, in both orders" in text
    assert "What was answered is stored and is not bought again." in text
    assert "nothing of this was stored" in shown(report, kept=False)
    assert "pairs:" not in text


async def test_many_pairs_are_a_line_each_and_what_they_come_to() -> None:
    first = json.dumps({"better": "FIRST", "quoted_from": "FIRST", "reason": "So.", "evidence": "Please refund order"})
    report, _ = await compared(("a", "b", "a"), ("c", "b", "b"), replies=lambda _: Canned(text=first), dimension="tone")
    text = shown(report)
    assert text.count("conflict (A first: a, B first: b)") == 2
    assert "2 pairs: A better in 0, B in 0, ties 0; undecided: 2 conflicts, 0 unknown, 0 grader errors" in text
    assert "A's share" not in text
    assert "conflicts: 1.000 (2 of 2; 0.342 to 1.000); by the first place 2, by the second 0, sign test p = 0.5" in text
    assert "against what people said of 2: single replies right 0.500" in text
    assert "of these none is decided" in text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.csv", "a,b,better\n r1 ,r2,A\nr3,r4,\n"),
        ("p.csv", "better,b,a\nA,r2,r1\n,r4,r3\n"),
        ("p.jsonl", '{"a": "r1", "b": "r2", "better": "a"}\n\n{"a": "r3", "b": "r4"}\n'),
    ],
)
def test_pairs_are_read_from_csv_and_from_json_lines(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read(tmp_path / name) == [Pair("r1", "r2", Preference.A), Pair("r3", "r4")]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("p.csv", "a,b\n", "there is no pair in"),
        ("p.csv", "a\nr1\n", "p.csv:2: write the ids of two runs as a and b"),
        ("p.csv", "a,b\nr1,\n", "p.csv:2: write the ids of two runs as a and b"),
        ("p.csv", "a,b\nr1,r2,a\n", "p.csv:2: write a, b and perhaps better"),
        ("p.csv", "a,b,better\nr1,r2,unknown\n", "p.csv:2: better is 'unknown'; write a, b or tie"),
        ("p.jsonl", '{"a": "r1", "b": 2}\n', "p.jsonl:1: write a, b and perhaps better, each a text"),
        ("p.jsonl", '{"a": "r1", "b": "r2", "score": 3}\n', "p.jsonl:1: write a, b and perhaps better"),
        ("p.jsonl", "a,b\n", "write CSV with a header a,b or JSON lines"),
    ],
)
def test_what_is_no_pair_is_told_by_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as refused:
        read(tmp_path / name)
    assert said in str(refused.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read(tmp_path / "p.csv")
