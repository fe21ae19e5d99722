"""What judging may cost: reserved before each call, split over partitions, charged with the most where nobody knows (spec section 6)."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from builders import T0
from hypothesis import given
from hypothesis import strategies as some
from judge_builders import PRICE, Bench, a_verdict, refunded
from msgspec.structs import replace

from pipeline.errors import TemporaryError
from pipeline.judges.budget import Account, BudgetSettings
from pipeline.judges.model import ChatRequest
from pipeline.judges.purse import OverBudgetError, Purse
from pipeline.judges.scripted import Canned, hanging, malformed
from pipeline.judges.votes import Vote, VotesInMemory, VoteState
from pipeline.model import ids
from pipeline.model.result import Outcome, Unresolved
from pipeline.model.step import Message
from pipeline.model.time import DAY, SECOND

PROMPT = ChatRequest((Message("user", "x" * 8997),), {}, most_tokens=300)
"""3,000 tokens in at three bytes each, 300 out: the specification's call of 0.003015 dollars (section 4.3)."""
CALL = Decimal("0.003015")


def a_purse(budget: dict[str, Any], partitions: int = 1, votes: VotesInMemory | None = None) -> Purse:
    return Purse(BudgetSettings(**budget), votes or VotesInMemory(), lambda: T0, partitions)


async def spend(purse: Purse, project: str = "p", run_id: str = "r", cost: Decimal = CALL) -> None:
    async with purse.holding(project, run_id, CALL) as hold:
        hold.spent = cost


def test_the_most_that_a_call_can_cost_is_what_the_specification_works_out() -> None:
    assert PRICE.cost(PROMPT.prompt_tokens, PROMPT.most_tokens) == CALL


async def test_a_day_buys_what_it_has_money_for() -> None:
    purse = a_purse({"per_day": "0.0121"})
    for _ in range(4):
        await spend(purse)
    with pytest.raises(OverBudgetError, match=r"of the 0\.0121 dollars of the day, 0\.0121 are spent and 0\.0000 set aside"):
        await spend(purse)


async def test_calls_in_flight_have_their_money_set_aside() -> None:
    purse = a_purse({"per_day": "0.0121"})
    async with purse.holding("p", "r", CALL), purse.holding("p", "r", CALL), purse.holding("p", "r", CALL):
        await spend(purse, cost=Decimal(0))
        async with purse.holding("p", "r", CALL):
            with pytest.raises(OverBudgetError):
                await spend(purse)
    await spend(purse)


async def test_each_project_has_its_own_and_those_without_a_limit_spend_what_they_like() -> None:
    purse = a_purse({"projects": {"poor": "0.004", "none": "0"}})
    for _ in range(50):
        await spend(purse, "rich")
    await spend(purse, "poor")
    for project in ("poor", "none"):
        with pytest.raises(OverBudgetError):
            await spend(purse, project)


async def test_the_day_is_split_evenly_over_the_partitions() -> None:
    runs = {ids.bucket("p", f"run-{number}") % 4: f"run-{number}" for number in range(100)}
    purse = a_purse({"per_day": "0.0244"}, partitions=4)
    for partition in range(4):
        await spend(purse, run_id=runs[partition])
        await spend(purse, run_id=runs[partition])
        with pytest.raises(OverBudgetError, match="of which this is one of 4 parts"):
            await spend(purse, run_id=runs[partition])


async def test_what_was_spent_before_is_read_once_and_another_day_begins_anew() -> None:
    votes = VotesInMemory()
    now = T0
    purse = Purse(BudgetSettings(per_day=Decimal("0.005")), votes, lambda: now)
    paid = Vote(Bench.key("r1"), VoteState.REPLY, T0, cost_usd=0.003)
    votes.rows.append(paid)
    with pytest.raises(OverBudgetError, match=r"0\.0030 are spent"):
        await spend(purse, "default", "r1")
    now = (T0 // DAY + 1) * DAY
    await spend(purse, "default", "r1")


@pytest.mark.parametrize(
    ("vote", "charged"),
    [
        ({"state": VoteState.INTENT, "reserved_usd": 0.5}, 0.5),
        ({"state": VoteState.REPLY, "reserved_usd": 0.5, "cost_usd": 0.2}, 0.2),
        ({"state": VoteState.REPLY, "reserved_usd": 0.5}, 0.5),
        ({"state": VoteState.REPLY, "cost_usd": 0.2, "lost": 1, "lost_usd": 0.5}, 0.7),
        ({"state": VoteState.FAILED}, 0.0),
    ],
)
def test_a_cost_that_nobody_knows_is_charged_as_the_most_it_can_be(vote: dict[str, Any], charged: float) -> None:
    row = replace(Vote(Bench.key("r"), VoteState.INTENT, T0), **vote)
    assert row.charged_usd == pytest.approx(charged)


@given(some.lists(some.tuples(some.integers(1, 100), some.integers(0, 100), some.booleans()), max_size=100))
def test_an_account_never_promises_more_than_it_has(calls: list[tuple[int, int, bool]]) -> None:
    account, open_calls = Account(Decimal(500)), list[tuple[Decimal, Decimal]]()
    for most, percent, ends in calls:
        reserved = account.reserve(Decimal(most))
        if reserved is not None:
            account = reserved
            open_calls.append((Decimal(most), Decimal(most) * percent / 100))
        if ends and open_calls:
            account = account.settle(*open_calls.pop(0))
        assert account.spent + account.reserved <= 500
    for call in open_calls:
        account = account.settle(*call)
    assert account.reserved == 0


async def test_a_capped_dimension_says_so_and_nobody_is_asked() -> None:
    async with Bench(budget={"per_day": "0"}) as bench:
        judgment = await bench.judged("correctness")
        assert bench.server.asked == []
        assert bench.votes.rows == [], "an intent is written for a call that is made"
    assert (judgment.outcome, judgment.score, judgment.unresolved) == (Outcome.INSUFFICIENT_EVIDENCE, None, Unresolved.BUDGET)
    assert judgment.reason.startswith("of the 0 dollars of the day")
    assert (judgment.cost_usd, judgment.votes) == (0.0, 0)


async def one_call(dimension: str) -> tuple[float, float]:
    """What is set aside for a call about a dimension of the refund, and what it costs."""
    async with Bench() as bench:
        await bench.judged(dimension)
        intent, reply, *_ = bench.votes.rows
    assert reply.cost_usd is not None
    return intent.reserved_usd, reply.cost_usd


async def test_what_was_bought_before_the_money_ended_is_counted_and_decides_nothing() -> None:
    most, cost = await one_call("correctness")
    async with Bench(budget={"per_day": most + cost / 2}) as bench:
        judgment = await bench.judged("correctness")
        (bought,) = [row for row in bench.votes.rows if row.state is VoteState.REPLY]
    assert bought.score == 5
    assert (judgment.score, judgment.unresolved) == (None, Unresolved.BUDGET)
    assert judgment.cost_usd == bought.cost_usd == cost


async def test_a_reply_without_a_verdict_stands_where_there_is_no_money_for_another() -> None:
    most, _ = await one_call("tone")
    async with Bench([malformed()], budget={"per_day": most}) as bench:
        judgment = await bench.judged("tone")
        assert len(bench.server.asked) == 1
    assert (judgment.outcome, judgment.unresolved) == (Outcome.GRADER_ERROR, Unresolved.GRADER_ERROR)


async def test_all_day_no_more_is_spent_than_there_is() -> None:
    """Concurrent judgments of one project, of which the last ones are capped: what the server was asked costs no more than the budget."""
    most, cost = await one_call("tone")
    budget = most + 9.5 * cost
    runs = [replace(refunded(), run_id=f"{number:032x}") for number in range(40)]
    async with Bench(budget={"per_day": budget}) as bench:
        judgments = [await bench.judged("tone", run) for run in runs[:5]]
        judgments += await asyncio.gather(*(bench.judged("tone", run) for run in runs[5:]))
        spent = sum(row.cost_usd or 0 for row in bench.votes.rows)
        last = await bench.judged("tone", runs[0])
    capped = [one for one in judgments if one.unresolved == Unresolved.BUDGET]
    assert 0 < len(capped) < 35
    assert all(one.score is not None for one in judgments if one not in capped)
    assert 5 * cost <= spent <= budget
    assert last.score is not None, "what was bought is not bought again"


async def test_a_call_whose_answer_was_lost_is_made_again_and_both_are_charged() -> None:
    async with Bench() as bench:
        await bench.judged("tone")
        (intent, reply) = bench.votes.rows
        bench.votes.rows = [intent]
        again = await bench.judged_by(bench.a_judge(), "tone")
        last = bench.votes.rows[-1]
        assert len(bench.server.asked) == 2
    assert "asked_again" in again.flags
    assert (last.lost, last.lost_usd, last.cost_usd) == (1, intent.reserved_usd, reply.cost_usd)
    assert await bench.votes.charged("default", 0, 2**62, 0, 1) == pytest.approx(intent.reserved_usd + (reply.cost_usd or 0))


async def test_a_call_that_was_not_answered_in_time_may_have_been_paid() -> None:
    async with Bench([hanging()], timeout=SECOND) as bench:
        with pytest.raises(TemporaryError, match="did not answer"):
            await bench.judged("tone")
        failed = bench.votes.rows[-1]
        assert (failed.state, failed.lost, failed.lost_usd > 0) == (VoteState.FAILED, 1, True)
        assert "asked_again" in (await bench.judged("tone")).flags
        assert bench.votes.rows[-1].lost == 1


@pytest.mark.parametrize("usage", [True, False])
async def test_a_reply_without_usage_is_charged_with_what_was_set_aside(usage: bool) -> None:
    async with Bench([Canned(text=a_verdict(4, "Fine.", "I refunded"), usage=usage)]) as bench:
        await bench.judged("tone")
        intent, reply = bench.votes.rows
    assert (reply.cost_usd is None) is not usage
    assert reply.charged_usd == (reply.cost_usd if usage else intent.reserved_usd)


class Broken(VotesInMemory):
    """A log that cannot be written when a reply comes, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    async def reply(self, vote: Vote) -> None:
        if self.times:
            self.times -= 1
            raise TemporaryError("the store is busy")
        await super().reply(vote)


async def test_a_paid_reply_outlasts_a_store_that_is_away() -> None:
    async with Bench() as bench:
        bench.votes = Broken(2)
        judge = bench.a_judge()
        for _ in range(2):
            with pytest.raises(TemporaryError, match="busy"):
                await bench.judged_by(judge, "tone")
        judgment = await bench.judged_by(judge, "tone")
        assert len(bench.server.asked) == 1
    assert judgment.score is not None
    assert "asked_again" not in judgment.flags


async def test_what_one_process_bought_another_does_not() -> None:
    async with Bench() as bench:
        first = await bench.judged("correctness")
        asked = len(bench.server.asked)
        assert await bench.judged_by(bench.a_judge(), "correctness") == first
        assert len(bench.server.asked) == asked
