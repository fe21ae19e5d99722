"""F7 and F8: the judge is down, slow, rate-limited, out of money, or talks nonsense, and comes back. docs/faults.md says what each is."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from faults.judge_door import Door
from faults.judged import Judged
from judge_replies.rows import SCORE, UNREADABLE

from pipeline.judges.question import Question
from pipeline.judges.reply import LONGEST
from pipeline.judges.scripted import Asked, Canned, failing, hanging, rate_limited
from pipeline.judges.tally import scored

Fault = Callable[[Asked], Canned | None]


def always(canned: Canned) -> Fault:
    return lambda _: canned


def by_turns(*canned: Canned | None) -> Fault:
    turns = itertools.cycle(canned)
    return lambda _: next(turns)


def _date(seconds: int) -> Canned:
    now = datetime.now(UTC).replace(microsecond=0)
    headers = {
        "Retry-After": format_datetime(now + timedelta(seconds=seconds), usegmt=True),
        "Date": format_datetime(now, usegmt=True),
    }
    return failing(429, message="slow down", headers=headers)


FAULTS: dict[str, tuple[Fault | None, Door]] = {
    "429 with Retry-After: 3": (always(rate_limited("3")), Door.OPEN),
    "429 with a date": (always(_date(3)), Door.OPEN),
    "500": (always(failing(500)), Door.OPEN),
    "503": (always(failing(503)), Door.OPEN),
    "connections refused": (None, Door.REFUSES),
    "connections reset": (None, Door.BREAKS),
    "TLS where HTTP was asked": (None, Door.BABBLES),
    "accept, then silence": (always(hanging()), Door.OPEN),
    "a byte at a time": (None, Door.DRIPS),
    "half of all calls fail": (by_turns(failing(503), None), Door.OPEN),
    "out of money": (always(failing(429, code="insufficient_quota")), Door.OPEN),
    "402": (always(failing(402)), Door.OPEN),
    "key refused": (always(failing(401)), Door.OPEN),
}
"""As the rows of F7 in docs/faults.md; each is done to two runs."""
EVERY_DAY = ("429 with Retry-After: 3", "a byte at a time")
NONSENSE = [text for reply in UNREADABLE.values() if len(text := reply(SCORE)) < LONGEST]
"""Replies in which no verdict can be read (H11)."""


@pytest.mark.parametrize("names", [EVERY_DAY, pytest.param(tuple(FAULTS), marks=[pytest.mark.real, pytest.mark.faults])])
async def test_f7_whatever_is_wrong_with_the_judge_costs_its_own_dimensions_at_most(
    names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Judged(tmp_path, monkeypatch, timeout="1s") as world:
        for name in names:
            await world.suffers(name, *FAULTS[name])
        counts = await world.reckoned()
        held = {name: world.held_back[name] > 0 for name in names}
        lines = [f"{name:28} {'held back' if held[name] else ''}" for name in names]
        with capsys.disabled():
            print("\n" + "\n".join(lines))  # noqa: T201 - what a reader of a run wants to see
            _tell(world, counts)
    assert counts == world.expected, "the judge came back in time for all of them"
    assert sum(counts.values()) == 5 * 2 * len(names)
    assert counts["scored"] >= 4 * 2 * len(names)
    assert world.judge.refused > 0
    assert min(world.beats[name] for name in names) > 10, "the loop stood still while the judge did"
    assert all(held[name] for name in ("connections refused", "503", "out of money", "402", "key refused") if name in names), held
    assert not held.get("half of all calls fail")


async def test_f7_no_reply_without_a_verdict_becomes_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Judged(tmp_path, monkeypatch) as world:
        await world.hears(by_turns(*(Canned(text=text) for text in NONSENSE)), runs=4)
        counts = await world.reckoned()
        garbled = world.judge.garbled
        with capsys.disabled():
            _tell(world, counts)
    assert counts == {"unresolved(grader_error)": 5 * 4}
    assert sum(garbled.values()) >= len(NONSENSE), "not all kinds were sent"
    assert set(garbled.values()) == {2}, "a reply without a verdict is asked for once more, and not twice"


async def test_mutant_c_a_reply_that_cannot_be_read_and_counts_as_the_lowest_score_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lenient(self: Question, reason: str) -> Any:
        return scored(self.rubric, self.dimension, float(self.rubric.scale_low), reason, "")

    monkeypatch.setattr(Question, "broken", lenient)
    async with Judged(tmp_path, monkeypatch) as world:
        await world.hears(always(Canned(text="4/5")), runs=1)
        with pytest.raises(AssertionError, match=r"is 1\.0, and the judge said"):
            await world.reckoned()


@pytest.mark.real
@pytest.mark.faults
async def test_f8_a_judge_that_is_down_past_the_deadline_costs_its_dimensions_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gates = [
        {"name": "no-deletions", "kind": "hard", "dimensions": ["no_deletion"], "quiet": "1000h"},
        {
            "name": "verdicts",
            "kind": "floor",
            "dimension": "tone",
            "raise_below": 0.8,
            "clear_above": 0.9,
            "window": "1m",
            "min_n": 1,
            "min_n_effective": 0,
        },
    ]
    async with Judged(tmp_path, monkeypatch, deadline="10m", gates=gates) as world:
        world.fault = "down"
        await world.judge.becomes(Door.REFUSES)
        gone = await world.send(6)
        await world.until(world.all_told, "the alert of a check in code")
        await world.until(world.nothing_is_pending, "the end of waiting")
        expired = await world.reckoned()
        assert expired == {"unresolved(expired)": 5 * 6}
        await world.judge.becomes(Door.OPEN)
        back = await world.send(4)
        await world.until(world.nothing_is_pending, "the judgments of new runs")
        await world.until(world.has_read_a_window_of("verdicts"), "a final window")
        counts = await world.reckoned()
        details = [await world.detail(one) for one in (*gone, *back)]
        trips = [trip for trip in await world.store.trips() if trip.gate == "verdicts"]
        states = [state for state in await world.store.gate_states() if state.gate == "verdicts"]
        with capsys.disabled():
            _tell(world, counts)
            print(f"the floor gate: {len(trips)} trips; {sorted({state.why for state in states})}")  # noqa: T201
    assert counts == {**world.expected, "unresolved(expired)": 5 * 6}, "what expired stays so, once"
    assert sum(world.expected.values()) == 5 * 4
    assert all(len({one.dimension for one in detail.results}) == len(detail.results) for detail in details)
    assert trips == [], "windows in which nothing was decided trip no gate"


@pytest.mark.slow
async def test_f7_a_budget_that_is_spent_leaves_the_rest_unresolved_and_nothing_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = 0.05
    async with Judged(tmp_path, monkeypatch, budget={"per_day": budget}) as world:
        await world.suffers("little money", runs=12)
        counts = await world.reckoned()
        (*days,) = await world.store.judge.costs("faults", 100)
        with capsys.disabled():
            _tell(world, counts)
    assert counts["scored"] > 0
    assert counts["unresolved(budget)"] > 0
    assert sum(counts.values()) == 5 * 12
    assert counts["scored"] <= world.expected["scored"], "what had two votes of three is no score"
    assert 0 < sum(day.cost_usd or 0 for day in days) <= budget


def _tell(world: Judged, counts: dict[str, int]) -> None:
    verdicts, lost = world.judge.verdicts, sum(world.judge.verdicts.values()) - len(world.judge.verdicts)
    print(  # noqa: T201 - what a reader of a run wants to see
        f"\n{len(world.ledger.traces)} runs; judged dimensions: {counts}; {len(world.pager.told)} alerts of checks in code; "
        f"{sum(verdicts.values())} verdicts sent, of which {lost} were sent again after the first was lost on its way; "
        f"{sum(world.judge.garbled.values())} replies without a verdict, {world.judge.refused} refusals; "
        f"the loop was held up for at most {world.longest_beat_s * 1000:.0f} ms"
    )
