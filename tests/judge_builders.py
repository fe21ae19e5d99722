"""A refund that went well, requests to judge it, and a judge behind real HTTP."""

import json
from decimal import Decimal
from typing import Any, Self

from builders import T0
from run_builders import a_call, a_run

from pipeline.config.rubrics import load
from pipeline.judges.endpoint import Endpoint
from pipeline.judges.judge import Judge
from pipeline.judges.openai import OpenAIModel
from pipeline.judges.purse import Purse
from pipeline.judges.scripted import MODEL, Script, ScriptedJudge
from pipeline.judges.settings import JudgeSettings, Price
from pipeline.judges.transcript import render
from pipeline.judges.votes import VoteKey, VotesInMemory
from pipeline.model.result import JudgeRequest, Judgment
from pipeline.model.rubric import Rubric
from pipeline.model.run import Run
from pipeline.model.time import MINUTE, SECOND
from pipeline.runtime.clock import ManualClock

SUPPORT = load("support")
PRICE = Price(input_per_million=Decimal("0.75"), output_per_million=Decimal("2.55"))
ORDER = '{"order_id": "A-1001", "item": "lamp", "amount": 42.5}'


def refunded(**fields: Any) -> Run:
    """A run that looked an order up, refunded it, and said so."""
    given: dict[str, Any] = {
        "system": "You are a support agent. Refund only orders that exist.",
        "request": "Please refund order A-1001.",
        "answer": "I refunded 42.50 USD for order A-1001.",
    }
    calls = fields.pop(
        "calls",
        (
            a_call("lookup_order", {"order_id": "A-1001"}, ORDER),
            a_call(
                "issue_refund",
                {"order_id": "A-1001", "amount": 42.5},
                '{"refund_id": "R-1", "order_id": "A-1001", "amount": 42.5}',
            ),
        ),
    )
    return a_run(*calls, **(given | fields))


def a_verdict(score: object = 5, reason: object = "It agrees.", evidence: object = '"amount": 42.5') -> str:
    """A reply as the prompt asks for it."""
    return json.dumps({"score": score, "reason": reason, "evidence": evidence})


def a_request_to_judge(run: Run, judge: Judge, **fields: Any) -> JudgeRequest:
    """A request for all dimensions of the judge's rubric."""
    transcript = render(run, 24_000, fields.pop("reference", None))
    return JudgeRequest(
        project=run.project,
        trace_id=run.trace_id,
        run_id=run.run_id,
        agent=run.place.cohort.agent,
        run_version=8,
        transcript_hash=transcript.hash,
        transcript=transcript.body,
        dimensions=tuple((name, contract.hash) for name, contract in judge.contracts.items()),
        plan="all",
        inclusion_probability=1.0,
        requested_ns=T0,
        deadline_ns=T0 + 15 * MINUTE,
        **fields,
    )


class Bench:
    """A judge of a rubric, the scripted server it asks over HTTP, and its votes."""

    def __init__(self, replies: Script = (), rubric: Rubric = SUPPORT, **settings: Any) -> None:
        self._rubric = rubric
        self.server = ScriptedJudge(replies)
        self.votes = VotesInMemory()
        self._settings = settings

    async def __aenter__(self) -> Self:
        await self.server.__aenter__()
        given = {"base_url": self.server.url, "model": MODEL, "price": PRICE, "timeout": 5 * SECOND}
        self.settings = JudgeSettings.model_validate(given | self._settings)
        self._model = OpenAIModel(self.settings, {})
        self.clock = ManualClock(T0)
        self.judge = self.a_judge()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._model.__aexit__(*error)
        await self.server.__aexit__(*error)

    def a_judge(self, partitions: int = 1, **more: Any) -> Judge:
        """A judge as another process would have it: it knows what is in the log and nothing else."""
        now = self.clock.now
        self.endpoint = Endpoint(self._model, self.settings, now)
        purse = Purse(self.settings.budget, self.votes, now, partitions)
        return Judge(self._rubric, self.settings, {self.settings.model: self.endpoint}, purse, self.votes, now, **more)

    async def judged(self, dimension: str, run: Run | None = None, **fields: Any) -> Judgment:
        """The judgment of one dimension of a run."""
        return await self.judged_by(self.judge, dimension, run, **fields)

    async def judged_by(self, judge: Judge, dimension: str, run: Run | None = None, **fields: Any) -> Judgment:
        """The same by another judge."""
        request = a_request_to_judge(run or refunded(), judge, **fields)
        return await judge.judge(request, dimension, judge.contracts[dimension].hash)

    @staticmethod
    def key(run_id: str, project: str = "default") -> VoteKey:
        """The key of a call about some run."""
        return VoteKey(project, run_id, "t", "c", "tone", 0, 0)


async def judged(dimension: str, replies: Script = (), run: Run | None = None, **settings: Any) -> Judgment:
    """The judgment of one dimension of a run, with a judge that replies as scripted."""
    async with Bench(replies, **settings) as bench:
        return await bench.judged(dimension, run)
