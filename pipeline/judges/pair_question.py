"""Pair question: one dimension of two transcripts in one order, what to ask about them and how to read the answers."""

from typing import Any, Final, Self

import msgspec

from pipeline.judges import pair_prompt, transcript
from pipeline.judges.pair_reply import PREFERENCE_PARSER_VERSION, Better, parse_preference, preference_schema
from pipeline.judges.quote import QUOTE_VERSION, fold, found
from pipeline.judges.reply import Malformed
from pipeline.judges.settings import JudgeSettings
from pipeline.judges.tally import Why
from pipeline.judges.transcript import TRANSCRIPT_VERSION, Document
from pipeline.judges.votes import VoteKey
from pipeline.model import ids
from pipeline.model.contract import Contract
from pipeline.model.pairwise import Place
from pipeline.model.rubric import Dimension, Rubric
from pipeline.model.step import Message

PAIRWISE: Final = "pairwise"
"""The kind of a contract about two runs."""
BOTH_ORDERS: Final = "both-orders-1"
"""One call with each of the two shown first; a preference or a tie counts where both say it."""


class Candidate(msgspec.Struct, frozen=True):
    """A run that is compared: what a judge is shown of it, and the hash of what is stored of that."""

    run_id: str
    transcript_hash: str
    document: Document
    models: tuple[str, ...] = ()
    """Models that the agent used."""

    @classmethod
    def of(cls, run_id: str, transcript_hash: str, body: str, models: tuple[str, ...] = ()) -> Self:
        """Return the candidate of a stored transcript."""
        return cls(run_id, transcript_hash, transcript.read(body), models)

    def differs(self, other: Self) -> str:
        """Return in what the other run was asked something else; empty where both answer one request, after folding as quotes are."""
        if fold(self.document.request) != fold(other.document.request):
            return "they answer different requests"
        if self._said_before != other._said_before:
            return "their users said different things before the request"
        references = {self.document.reference, other.document.reference} - {msgspec.UNSET}
        return "they are held against different reference answers" if len(references) > 1 else ""

    @property
    def _said_before(self) -> list[str]:
        return [fold(turn.text) for turn in self.document.earlier if turn.role == "user"]


class PairGrade(msgspec.Struct, frozen=True):
    """What one call came to."""

    outcome: Better
    reason: str = ""
    quote: str = ""

    @property
    def score(self) -> float | None:
        """A preference is no number."""
        return None


def pair_contract(rubric: Rubric, dimension: str, settings: JudgeSettings) -> Contract:
    """Return the contract under which two runs are compared in a dimension of the rubric."""
    return Contract(
        kind=PAIRWISE,
        dimension=dimension,
        rubric_hash=rubric.grading_hash(dimension),
        prompt_hash=pair_prompt.prompt_hash(rubric, dimension),
        model=settings.model,
        decoding={"temperature": 0.0, "max_tokens": settings.max_output_tokens},
        parser_version=PREFERENCE_PARSER_VERSION,
        transcript_version=TRANSCRIPT_VERSION,
        evidence_schema=QUOTE_VERSION,
        aggregation=BOTH_ORDERS,
    )


class PairQuestion(msgspec.Struct, frozen=True):
    """What a judge is asked about two runs in one order. Pure: the same replies always come to the same grades."""

    project: str
    rubric: Rubric
    dimension: Dimension
    contract: Contract
    first: Candidate
    second: Candidate

    def messages(self, nonce: str) -> list[Message]:
        """Return the prompt of one call."""
        return pair_prompt.build(self.rubric, self.dimension.name, self.first.document, self.second.document, nonce)

    def key(self, vote: int, attempt: int) -> VoteKey:
        """Name one of its calls. The order is in it: that of B and A with B first is that of A and B after the exchange."""
        return VoteKey(
            project=self.project,
            run_id=f"{self.first.run_id}+{self.second.run_id}",
            transcript_hash=ids.digest(16, PAIRWISE, self.first.transcript_hash, self.second.transcript_hash),
            contract=self.contract.hash,
            dimension=self.dimension.name,
            vote=vote,
            attempt=attempt,
        )

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a reply."""
        return preference_schema()

    def unparsed(self, raw: str) -> bool:
        """Whether a reply holds no preference that can be read, so that it may be asked for once more."""
        return isinstance(parse_preference(raw), Malformed)

    def broken(self, reason: str) -> PairGrade:
        """Return what a call without a preference comes to."""
        return PairGrade(Better.GRADER_ERROR, reason)

    def grade(self, raw: str) -> PairGrade:
        """Return what a raw reply comes to: its quote must stand in the data of the run that it says."""
        said = parse_preference(raw)
        if isinstance(said, Malformed):
            return self.broken(f"{Why.MALFORMED}: {said.reason}")
        if said.quoted_from is None:
            return PairGrade(said.better, f"{Why.UNKNOWN}: {said.reason}", said.evidence)
        whose = self.first if said.quoted_from is Place.FIRST else self.second
        # What speaks for a run is observed where the dimension says so; what speaks against it may be its own words.
        observed = self.dimension.observation_only and said.better == said.quoted_from.value
        if not found(said.evidence, whose.document, observation_only=observed):
            where = f"an observation of the {said.quoted_from} run" if observed else f"the data of the {said.quoted_from} run"
            return PairGrade(Better.GRADER_ERROR, f"{Why.QUOTE_NOT_FOUND}: the quote does not stand in {where}", said.evidence)
        return PairGrade(said.better, said.reason, said.evidence)
