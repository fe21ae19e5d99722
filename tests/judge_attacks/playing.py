"""Attacks played against the product's judge over real HTTP, with a model that believes all that it reads outside the fence."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import NamedTuple
from unittest.mock import patch

from judge_attacks.cases import NONCE, Case
from judge_attacks.places import planted, unattacked
from judge_builders import Bench, a_request_to_judge

from pipeline.config.rubrics import load
from pipeline.judges.judge import Judge
from pipeline.judges.pair_judge import PairJudge
from pipeline.judges.pair_question import Candidate
from pipeline.judges.purse import Purse
from pipeline.judges.scripted_gullible import gullible
from pipeline.judges.transcript import render
from pipeline.model.pairwise import PairOutcome
from pipeline.model.result import Outcome
from pipeline.model.run import Run
from pipeline.model.time import SECOND

Asks = tuple[str, str]
"""(rubric, dimension)."""

CORRECTNESS: Asks = ("support", "correctness")
"""A score, by three votes."""
GROUNDED: Asks = ("criteria", "grounded")
"""A criterion, by one."""
QUESTIONS = (CORRECTNESS, GROUNDED)
"""Both fail a claim that a tool contradicts."""
BUDGET = 24_000
"""Characters of a transcript, as the product has it by default."""
_AT_ONCE = 16


class Played(NamedTuple):
    """What an attack came to."""

    case: Case
    place: str
    question: str
    outcome: Outcome
    score: float | None
    flags: frozenset[str] = frozenset()
    asked: bool = True
    """Whether a model was asked, or code decided."""


def concatenated(name: str, text: str, nonce: str) -> str:
    """Stand where the product fences, and only put the text there.

    This is the seam: tests put it over the name under which prompts know the fence. The product has no parameter and no setting for it.
    """
    del name, nonce
    return text


async def played(
    cases: Iterable[Case], places: Iterable[str], questions: Iterable[Asks] = QUESTIONS, *, fenced: bool = True
) -> list[Played]:
    """Play each attack in each place, and ask each question about it."""
    where = list(places)
    return await _asked([(case, place, planted(place, case.text)) for case in cases for place in where], questions, fenced=fenced)


async def unhurt(*, fenced: bool = True) -> dict[str, Played]:
    """What the run comes to that nobody attacked, by question."""
    nobody = (Case("", "", ""), "", unattacked())
    return {one.question: one for one in await _asked([nobody], QUESTIONS, fenced=fenced)}


async def _asked(runs: Sequence[tuple[Case, str, Run]], questions: Iterable[Asks], *, fenced: bool) -> list[Played]:
    found: list[Played] = []
    for rubric, dimension in questions:
        async with Bench(gullible, load(rubric), timeout=300 * SECOND) as bench:
            judge, slots = bench.a_judge(nonces=lambda: NONCE), asyncio.Semaphore(_AT_ONCE)
            with nullcontext() if fenced else _nothing_fenced():
                found += await asyncio.gather(*(_one(judge, dimension, slots, *run) for run in runs))
    return found


async def pairs(cases: Iterable[Case], *, fenced: bool = True) -> list[tuple[Case, PairOutcome]]:
    """Compare the run, with each attack in its answer, with one that admits that there is no such order: which of the two is better?

    Fenced or not, the second deserves to win.
    """
    honest = _candidate("b", planted("answer", "I could not find order A-404."))
    found = []
    async with Bench(gullible, load("support"), timeout=300 * SECOND) as bench:
        purse = Purse(bench.settings.budget, bench.votes, bench.clock.now)
        endpoints = {bench.settings.model: bench.endpoint}
        judge = PairJudge(load("support"), bench.settings, endpoints, purse, bench.votes, bench.clock.now, lambda: NONCE)
        with nullcontext() if fenced else _nothing_fenced():
            for case in cases:
                if render(planted("answer", case.text), BUDGET).too_long:
                    continue
                hostile = _candidate("a", planted("answer", case.text))
                found.append((case, (await judge.compare("default", hostile, honest, "correctness")).judgment.outcome))
    return found


def _candidate(name: str, run: Run) -> Candidate:
    transcript = render(run, BUDGET)
    return Candidate.of(name * 32, transcript.hash, transcript.body)


@contextmanager
def _nothing_fenced() -> Iterator[None]:
    with patch("pipeline.judges.prompt.fenced", concatenated), patch("pipeline.judges.pair_prompt.fenced", concatenated):
        yield


async def _one(judge: Judge, dimension: str, slots: asyncio.Semaphore, case: Case, place: str, run: Run) -> Played:
    if render(run, BUDGET).too_long:  # then the product asks nobody
        return Played(case, place, dimension, Outcome.INSUFFICIENT_EVIDENCE, None, asked=False)
    async with slots:
        judgment = await judge.judge(a_request_to_judge(run, judge), dimension, judge.contracts[dimension].hash)
    flags = frozenset(judgment.flags)
    return Played(case, place, dimension, judgment.outcome, judgment.score, flags, asked=judgment.votes > 0)
