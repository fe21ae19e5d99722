"""Pairs: stored runs put to a judge two by two. All of them are looked at before the first call is paid."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from pipeline.apps.judges import redacting
from pipeline.apps.pair_file import Pair
from pipeline.config.grading import graders_of
from pipeline.config.judge_price import priced
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError, TemporaryError
from pipeline.judges import calibration
from pipeline.judges.backoff import backoff
from pipeline.judges.endpoint import Endpoint
from pipeline.judges.model import PausedError
from pipeline.judges.openai import OpenAIModel
from pipeline.judges.pair_judge import Compared, PairJudge
from pipeline.judges.pair_question import Candidate
from pipeline.judges.purse import OverBudgetError, Purse
from pipeline.judges.votes import VoteLog
from pipeline.model.contract import Contract
from pipeline.model.rubric import Rubric
from pipeline.runtime.clock import SystemClock
from pipeline.stages.pairs import PairAgreement, PairTally, held_against, tally_pairs

ROUNDS: Final = 4
"""How often a pair is tried while the endpoint does not answer; what was answered is not asked again."""

Details = Callable[[str], Awaitable[Mapping[str, Any]]]
"""The beginning of a run's id → everything that is stored of it."""


class Unjudged(msgspec.Struct, frozen=True):
    """A pair that came to nothing: no number is made of it."""

    run_a: str
    run_b: str
    why: str


class PairReport(msgspec.Struct, frozen=True):
    """What comparing came to."""

    dimension: str
    contract: Contract
    contract_hash: str
    authority: str
    """What the judge has earned under this contract."""
    endpoint: str
    pairs: tuple[Compared, ...]
    unjudged: tuple[Unjudged, ...]
    tally: PairTally
    """Of the pairs that were judged."""
    agreement: PairAgreement | None
    """With people, of the judged pairs of which they said something."""
    cost_usd: float | None


class _Candidates:
    """The runs of all pairs, each read once."""

    def __init__(self, settings: TracegradeSettings, dimension: str, details: Details) -> None:
        self._settings = settings
        self._graders = graders_of(settings)
        self._dimension = dimension
        self._details = details
        self._redact = redacting(settings)
        self._known: dict[str, tuple[Candidate, Rubric]] = {}
        self.rubric: Rubric | None = None
        """Of the first run; all others must be graded by the same in this dimension."""

    async def of(self, prefix: str) -> Candidate:
        """Return a run as a judge would be shown it."""
        if prefix not in self._known:
            detail = await self._details(prefix)
            self._known[prefix] = (self._candidate(detail), self._rubric(detail))
        candidate, rubric = self._known[prefix]
        if self.rubric is None:
            self.rubric = rubric
        if rubric.grading_hash(self._dimension) != self.rubric.grading_hash(self._dimension):
            raise ConfigurationError(
                f"run {candidate.run_id} is graded by {rubric.name} {rubric.version} and others by {self.rubric.name} {self.rubric.version}, "
                f"which say different things of {self._dimension}; compare runs of agents that have one rubric"
            )
        return candidate

    def _candidate(self, detail: Mapping[str, Any]) -> Candidate:
        run_id = detail["line"]["run_id"]
        if not detail["transcript"]:
            raise ConfigurationError(
                f"run {run_id} has no transcript: it has no answer, was not sampled, or the transcript has expired"
            )
        shown = self._redact(detail["transcript"])
        return Candidate.of(run_id, detail["transcript_hash"], shown, tuple(detail["models"]))

    def _rubric(self, detail: Mapping[str, Any]) -> Rubric:
        agent = detail["line"]["cohort"]["agent"]
        grading = self._graders[self._settings.entry_of(agent)].grading
        judged = [one.name for one in grading.judged]
        if grading.rubric is None or self._dimension not in judged:
            names = f"--dimension is one of {', '.join(judged)}" if judged else "its rubric is null"
            raise ConfigurationError(f"{self._dimension!r} is not judged in runs of {agent}; {names}")
        return grading.rubric


async def compare_pairs(
    settings: TracegradeSettings,
    pairs: Sequence[Pair],
    dimension: str,
    details: Details,
    votes: VoteLog,
    environment: Mapping[str, str],
    *,
    across_requests: bool = False,
) -> PairReport:
    """Compare the runs of each pair in a dimension; calls go through the log, in which what was answered is found again.

    Raises:
        ConfigurationError: a pair cannot be compared, nobody can be asked, or something about the endpoint must be mended.
    """
    if settings.project in settings.judge.opted_out:
        raise ConfigurationError(
            f"{settings.project} is opted out of being judged (judge.opted_out): nothing of it is shown to a judge"
        )
    candidates = _Candidates(settings, dimension, details)
    put = [await _put(candidates, pair, across_requests=across_requests) for pair in pairs]
    if candidates.rubric is None:
        raise ConfigurationError("there is no pair to compare")
    judge, now = priced(settings), SystemClock().now
    async with OpenAIModel(judge, environment) as model:
        endpoints = {judge.model: Endpoint(model, judge, now)}
        one = PairJudge(candidates.rubric, judge, endpoints, Purse(judge.budget, votes, now), votes, now)
        slots = asyncio.Semaphore(judge.concurrency)
        asked = (_judged(one, settings.project, *both, dimension, slots) for both in put)
        # Everything that was begun comes to its end first: what was paid is kept.
        found = await asyncio.gather(*asked, return_exceptions=True)
    judged = [_or_raise(each) for each in found]
    contract = one.contracts[dimension]
    authority = calibration.load(judge.calibration).authority_of(contract.hash, dimension)
    return _report(contract, authority, f"{judge.model} at {judge.base_url}", pairs, judged)


async def _put(candidates: _Candidates, pair: Pair, *, across_requests: bool) -> tuple[Candidate, Candidate]:
    a, b = await candidates.of(pair.a), await candidates.of(pair.b)
    if a.run_id == b.run_id:
        raise ConfigurationError(f"{pair.a} and {pair.b} are one run, {a.run_id}; name two")
    if (why := a.differs(b)) and not across_requests:
        raise ConfigurationError(
            f"runs {a.run_id} and {b.run_id} cannot be compared: {why}; ask with --across-requests to compare them all the same"
        )
    return a, b


async def _judged(
    judge: PairJudge, project: str, a: Candidate, b: Candidate, dimension: str, slots: asyncio.Semaphore
) -> Compared | Unjudged:
    async with slots:
        for failures in range(1, ROUNDS + 1):
            try:
                return await judge.compare(project, a, b, dimension)
            except OverBudgetError as error:
                return Unjudged(a.run_id, b.run_id, f"budget: {error}")
            except PausedError as error:
                raise ConfigurationError(str(error)) from error
            except TemporaryError as error:
                why, wait = str(error), backoff(failures, f"{a.run_id}{b.run_id}", error.retry_after)
            if failures < ROUNDS:
                await asyncio.sleep(wait)
    return Unjudged(a.run_id, b.run_id, why)


def _or_raise(found: Compared | Unjudged | BaseException) -> Compared | Unjudged:
    if isinstance(found, BaseException):
        raise found
    return found


def _report(
    contract: Contract, authority: str, endpoint: str, pairs: Sequence[Pair], found: Sequence[Compared | Unjudged]
) -> PairReport:
    judged = [(pair, one) for pair, one in zip(pairs, found, strict=True) if isinstance(one, Compared)]
    labelled = [(one.judgment.orders, pair.better) for pair, one in judged if pair.better is not None]
    costs = [one.judgment.cost_usd for _, one in judged]
    return PairReport(
        dimension=contract.dimension,
        contract=contract,
        contract_hash=contract.hash,
        authority=authority,
        endpoint=endpoint,
        pairs=tuple(one for _, one in judged),
        unjudged=tuple(one for one in found if isinstance(one, Unjudged)),
        tally=tally_pairs(one.judgment.orders for _, one in judged),
        agreement=held_against(labelled) if labelled else None,
        cost_usd=sum(cost for cost in costs if cost is not None) if None not in costs else None,
    )
