"""The contract of a judged dimension: everything that makes its score, and how its calls are made."""

from typing import Final

import msgspec

from pipeline.judges.prompt import prompt_hash
from pipeline.judges.quote import QUOTE_VERSION
from pipeline.judges.reply import PARSER_VERSION, VERDICT_PARSER_VERSION
from pipeline.judges.settings import JudgeSettings
from pipeline.judges.transcript import TRANSCRIPT_VERSION
from pipeline.model.contract import Contract
from pipeline.model.result import Kind
from pipeline.model.rubric import Rubric

SINGLE: Final = "single-1"
"""One call; its score is the score."""
VOTES: Final = "gate-line-votes-1"
"""One call for each seed; two decided votes on one side of the gate win with the median of that side, else Unknown."""


class Ballot(msgspec.Struct, frozen=True):
    """How one call of a contract is made."""

    seed: int | None
    temperature: float


def judge_contract(rubric: Rubric, dimension: str, settings: JudgeSettings) -> Contract:
    """Return the contract under which a dimension of the rubric is judged."""
    gated = rubric.dimension(dimension).gate is not None
    return Contract(
        kind=Kind.JUDGED,
        dimension=dimension,
        rubric_hash=rubric.grading_hash(dimension),
        prompt_hash=prompt_hash(rubric, dimension),
        model=settings.model,
        decoding={"temperature": settings.temperature, "seeds": list(settings.seeds)} if gated else {"temperature": 0.0},
        parser_version=VERDICT_PARSER_VERSION if rubric.is_of_criteria else PARSER_VERSION,
        transcript_version=TRANSCRIPT_VERSION,
        evidence_schema=QUOTE_VERSION,
        aggregation=VOTES if gated else SINGLE,
    )


def ballots(contract: Contract) -> tuple[Ballot, ...]:
    """Return the calls that a contract asks for, in order."""
    seeds = contract.decoding.get("seeds", [None])
    return tuple(Ballot(seed, contract.decoding["temperature"]) for seed in seeds)
