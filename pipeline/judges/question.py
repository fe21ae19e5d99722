"""Question: one dimension of one transcript under one contract, what to ask about it and how to read the answers."""

from typing import Any, Self

import msgspec

from pipeline.judges.prompt import build
from pipeline.judges.quote import found
from pipeline.judges.reply import Malformed, Parsed, parse, parse_verdict, schema, verdict_schema
from pipeline.judges.tally import Grade, Why, scored
from pipeline.judges.transcript import Document, read
from pipeline.judges.votes import VoteKey
from pipeline.model.contract import Contract
from pipeline.model.result import JudgeRequest, Outcome
from pipeline.model.rubric import Dimension, ReferenceUse, Rubric
from pipeline.model.step import Message


class Question(msgspec.Struct, frozen=True):
    """What a judge is asked. Pure: the same replies always come to the same grades."""

    request: JudgeRequest
    rubric: Rubric
    dimension: Dimension
    contract: Contract
    document: Document

    @classmethod
    def of(cls, request: JudgeRequest, rubric: Rubric, contract: Contract) -> Self:
        """Return the question about the dimension that the contract names."""
        return cls(request, rubric, rubric.dimension(contract.dimension), contract, read(request.transcript))

    def messages(self, nonce: str) -> list[Message]:
        """Return the prompt of one call."""
        return build(self.rubric, self.dimension.name, self.document, nonce)

    def key(self, vote: int, attempt: int) -> VoteKey:
        """Name one of its calls."""
        return VoteKey(
            project=self.request.project,
            run_id=self.request.run_id,
            transcript_hash=self.request.transcript_hash,
            contract=self.contract.hash,
            dimension=self.dimension.name,
            vote=vote,
            attempt=attempt,
        )

    @property
    def lacks_reference(self) -> bool:
        """Whether the dimension is held against a reference answer that nobody wrote."""
        return self.dimension.reference is ReferenceUse.REQUIRED and self.document.reference is msgspec.UNSET

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a reply."""
        return verdict_schema() if self.rubric.is_of_criteria else schema(self.rubric.scale_low, self.rubric.scale_high)

    def read(self, raw: str) -> Parsed | Malformed:
        """Read a raw reply: a score on the scale, or PASS or FAIL of a criterion."""
        return parse_verdict(raw) if self.rubric.is_of_criteria else parse(raw, (self.rubric.scale_low, self.rubric.scale_high))

    def unparsed(self, raw: str) -> bool:
        """Whether a reply holds no verdict that can be read, so that it may be asked for once more."""
        return isinstance(self.read(raw), Malformed)

    def broken(self, reason: str) -> Grade:
        """Return what a call without a verdict comes to."""
        return Grade(Outcome.GRADER_ERROR, reason=reason)

    def grade(self, raw: str) -> Grade:
        """Return what a raw reply comes to."""
        said = self.read(raw)
        if isinstance(said, Malformed):
            return self.broken(f"{Why.MALFORMED}: {said.reason}")
        if said.score is None:
            return Grade(Outcome.INSUFFICIENT_EVIDENCE, reason=f"{Why.UNKNOWN}: {said.reason}", quote=said.evidence)
        # The lowest score may rest on what is missing: it quotes the request that was not met, the false claim, or the reference.
        lowest = said.score == self.rubric.scale_low
        observed = self.dimension.observation_only and not lowest
        against = lowest and self.dimension.reference is not msgspec.UNSET
        if not found(said.evidence, self.document, observation_only=observed, reference=against):
            where = "an observation" if observed else "what the judge was given"
            return Grade(
                Outcome.GRADER_ERROR, reason=f"{Why.QUOTE_NOT_FOUND}: the quote does not stand in {where}", quote=said.evidence
            )
        return scored(self.rubric, self.dimension, said.score, said.reason, said.evidence)
