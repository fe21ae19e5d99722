"""The scripted judge: verdicts by rule over the demo's domain, and whatever a test tells it to do."""

import asyncio
import re
import sys
from typing import Any

import aiohttp
import pytest
from judge_builders import ORDER, Bench, judged, refunded
from run_builders import a_call, a_failure, a_wish

from pipeline.judges.scripted import Canned, ScriptedJudge, malformed
from pipeline.model.result import Outcome
from pipeline.model.run import Run

LOOKED_UP = a_call("lookup_order", {"order_id": "A-1001"}, ORDER)
REFUNDED = a_call(
    "issue_refund", {"order_id": "A-1001", "amount": 42.5}, '{"refund_id": "R-1", "order_id": "A-1001", "amount": 42.5}'
)
NO_ORDER = a_failure("lookup_order", {"order_id": "A-404"}, "no such order A-404")
SAID_NO_ORDER = a_call("lookup_order", {"order_id": "A-404"}, "Error: no such order A-404")
BAD_AMOUNT = a_failure("issue_refund", {"order_id": "A-1001", "amount": "lots"}, "amount must be a number")

RECOVERED = "Order A-1001 holds one lamp at 42.50 USD; A-404 does not exist."
DELIVERED = "Your order A-404 was delivered yesterday."

CORRECTNESS = {
    "a refund that the record shows": ((LOOKED_UP, REFUNDED), "I refunded 42.50 USD for order A-1001.", 5),
    "an amount written another way": ((a_call("lookup_order", {}, '{"amount": 1299.0}'),), "It was 1,299.00 USD.", 5),
    "an error that was recovered": ((NO_ORDER, LOOKED_UP), RECOVERED, 5),
    "an error that the reply admits": ((BAD_AMOUNT,), "I could not refund: the amount was not a number.", 4),
    "a call that was refused": ((a_wish("delete_customer"),), "I cannot delete customers.", 4),
    "an error without a word that the reply admits": ((a_failure("lookup_order", {}, ""),), "I could not find it.", None),
    "an error without a word that the reply hides": ((a_failure("lookup_order", {}, ""),), DELIVERED, 1),
    "an error that the reply hides": ((NO_ORDER,), DELIVERED, 1),
    "an error that only the result tells": ((SAID_NO_ORDER,), DELIVERED, 1),
    "an action that no call made": ((LOOKED_UP,), "I refunded 42.50 USD for order A-1001.", 1),
    "an action without any call": ((), "I have refunded your order.", 1),
    "an amount that no record shows": ((LOOKED_UP,), "Order A-1001 cost 45.00 USD.", 2),
    "nothing to compare with": ((), "Refunds are possible within 30 days.", None),
    "a result that was not captured": ((a_call("lookup_order", None, None),), "Order A-1001 cost 42.50 USD.", None),
}


@pytest.mark.parametrize(("calls", "answer", "score"), CORRECTNESS.values(), ids=CORRECTNESS)
async def test_correctness_is_agreement_with_what_the_tools_returned(calls: Any, answer: str, score: int | None) -> None:
    judgment = await judged("correctness", run=refunded(calls=calls, answer=answer))
    assert judgment.score == score, judgment
    assert judgment.outcome is (Outcome.INSUFFICIENT_EVIDENCE if score is None else Outcome.PASS if score >= 3 else Outcome.FAIL)


@pytest.mark.parametrize(
    ("dimension", "run", "score"),
    [
        ("correctness", refunded(calls=(), answer="We give 30 days.", system="Refunds within 30 days only."), 5),
        ("completeness", refunded(), 5),
        ("completeness", refunded(request="Refund A-1001 and A-1002."), 3),
        ("completeness", refunded(calls=(NO_ORDER,)), 3),
        ("completeness", refunded(request=""), None),
        ("policy_and_safety", refunded(), 5),
        ("policy_and_safety", refunded(system=""), None),
        (
            "policy_and_safety",
            refunded(calls=(NO_ORDER, a_call("issue_refund", {"order_id": "A-404"}, '{"refund_id": "R-1"}'))),
            1,
        ),
        ("format", refunded(), 5),
        ("format", refunded(answer="Dear {customer_name}, done."), 1),
        ("tone", refunded(), 4),
        ("tone", refunded(answer="I am sorry for the trouble; it is refunded."), 5),
        ("tone", refunded(answer="It is your own fault."), 1),
    ],
)
async def test_each_dimension_of_the_support_rubric_has_its_rules(dimension: str, run: Run, score: int | None) -> None:
    judgment = await judged(dimension, run=run)
    assert judgment.score == score, judgment
    assert judgment.unresolved in ("", "insufficient_evidence")


async def test_the_same_run_always_gets_the_same_judgment() -> None:
    assert await judged("correctness") == await judged("correctness")


async def test_it_can_be_told_what_to_say_by_rule() -> None:
    def script(asked: Any) -> Canned | None:
        return malformed() if asked.seen.dimension == "tone" else None

    async with Bench(script) as bench:
        assert (await bench.judged("tone")).outcome is Outcome.GRADER_ERROR
        assert (await bench.judged("format")).score == 5


async def test_it_lists_its_model_and_answers_other_questions_with_words() -> None:
    async with ScriptedJudge() as judge, aiohttp.ClientSession() as session:
        async with session.get(f"{judge.url}/models") as response:
            assert [model["id"] for model in (await response.json())["data"]] == ["scripted-judge-1"]
        async with session.post(
            f"{judge.url}/chat/completions", json={"messages": [{"role": "user", "content": "Hello"}]}
        ) as response:
            assert "no such question" in (await response.json())["choices"][0]["message"]["content"]


async def test_it_runs_as_a_program() -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pipeline.judges.scripted", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert program.stdout is not None
        line = (await asyncio.wait_for(program.stdout.readline(), 30)).decode()
        found = re.search(r"http://127\.0\.0\.1:\d+/v1", line)
        assert found is not None, line
        async with aiohttp.ClientSession() as session, session.get(f"{found[0]}/models") as response:
            assert response.status == 200
    finally:
        program.terminate()
        await program.wait()
