"""Results: what a check, a judge or the scorecard says about one dimension of a run."""

from enum import StrEnum
from hashlib import blake2b
from typing import Final

import msgspec

from pipeline.model import ids


class Outcome(StrEnum):
    """The four outcomes (spec section 1). A fifth state, pending, is the absence of one."""

    PASS = "pass"
    FAIL = "fail"
    INSUFFICIENT_EVIDENCE = "insufficient_evidence"
    GRADER_ERROR = "grader_error"

    @property
    def decided(self) -> bool:
        """Whether something was measured."""
        return self in (Outcome.PASS, Outcome.FAIL)


class Kind(StrEnum):
    """Who says it."""

    CODE = "code"
    JUDGED = "judged"
    COMPOSITE = "composite"
    VERDICT = "verdict"


class Authority(StrEnum):
    """What a judge has earned by agreeing with people (spec section 7). Only ASSISTED and ALONE may decide."""

    UNCALIBRATED = "uncalibrated"
    ASSISTED = "assisted"
    ALONE = "alone"
    FROZEN = "frozen"


class Unresolved(StrEnum):
    """Why a planned judged dimension has no score. The order is the order in which one reason speaks for a run."""

    INCOMPLETE = "incomplete"
    OPTED_OUT = "opted_out"
    NO_JUDGE = "no_judge"
    BUDGET = "budget"
    TOO_LONG = "too_long"
    EXPIRED = "expired"
    GRADER_ERROR = "grader_error"
    INSUFFICIENT_EVIDENCE = "insufficient_evidence"


class Result(msgspec.Struct, frozen=True):
    """One dimension of one run. ``outcome`` is None while a judgment is outstanding.

    ``value`` is on the dimension's own scale, None unless decided. ``lower`` and ``upper`` bound what the value can still be:
    equal to it when decided, the scale's ends when not. ``reason`` starts with a word from a closed list where nothing was measured.
    """

    dimension: str
    kind: Kind
    contract: str
    outcome: Outcome | None
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    reason: str = ""
    evidence: str = ""
    authority: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """The scorecard's word on a run (spec section 2.4). ``reason`` is the first thing that decided it.

    ``composite_low`` and ``composite_high`` are on the rubric's composite scale; None where the rubric has no judged dimension planned.
    """

    outcome: Outcome | None
    """None while a judgment is outstanding that could still decide."""
    reason: str = ""
    composite_low: float | None = None
    composite_high: float | None = None
    for_a_person: tuple[str, ...] = ()
    """Gated dimensions that the judge answered Unknown, where nothing else decides: a person has to."""


BETWEEN_MODELS: Final = ", "
"""Between the models of a panel, where one text names them all; no id of a panel's model has it in it."""


class Judgment(msgspec.Struct, frozen=True):
    """A judge's word on one dimension of one transcript; a fact that the run's owner folds.

    ``score`` is on the rubric's scale and None unless the judge gave one. ``unresolved`` is empty where it did.
    ``cost_usd`` is None where the model has no known price. ``model`` names all that voted, :attr:`models`.
    """

    project: str
    trace_id: str
    run_id: str
    run_version: int
    transcript_hash: str
    contract: str
    dimension: str
    outcome: Outcome
    score: float | None = None
    unresolved: str = ""
    reason: str = ""
    quote: str = ""
    model: str = ""
    votes: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    flags: tuple[str, ...] = ()
    judged_ns: int = 0

    @property
    def models(self) -> tuple[str, ...]:
        """Ids of the models that were asked, as requested; none where code decided."""
        return tuple(self.model.split(BETWEEN_MODELS)) if self.model else ()

    @property
    def id(self) -> str:
        """The same question about the same transcript has one answer."""
        return ids.digest(16, self.project, self.run_id, self.transcript_hash, self.contract, self.dimension)


class JudgeRequest(msgspec.Struct, frozen=True):
    """A run to be judged: the transcript and the dimensions still wanted, each with its contract."""

    project: str
    trace_id: str
    run_id: str
    agent: str
    run_version: int
    transcript_hash: str
    transcript: str
    dimensions: tuple[tuple[str, str], ...]
    """(dimension, contract hash)."""
    plan: str
    inclusion_probability: float
    requested_ns: int
    deadline_ns: int
    models: tuple[str, ...] = ()
    """Models that the agent used: a judge of the same family is flagged."""


class Feedback(msgspec.Struct, frozen=True):
    """What a user or a client said of a trace, or of the one run in it that ``run_id`` names or that ``span_id`` is part of.

    ``value`` below 0 is a thumbs-down.
    """

    project: str
    trace_id: str
    id: str
    value: float
    run_id: str = ""
    author: str = ""
    comment: str = ""
    received_ns: int = 0
    span_id: str = ""


def content_hash(fact: Judgment | Feedback) -> str:
    """Name all that a fact says, as that of a span does: blake2b-128 of everything but when it came and which version asked.

    What is at its default is not hashed, so that a field added later changes the hash of no stored fact.
    """
    told = {field.name: getattr(fact, field.name) for field in msgspec.structs.fields(fact) if field.name not in _OF_ITS_WAY}
    defaults = {field.name: field.default for field in msgspec.structs.fields(fact)}
    return blake2b(_encode({name: value for name, value in told.items() if value != defaults[name]}), digest_size=16).hexdigest()


_OF_ITS_WAY: Final = frozenset({"judged_ns", "received_ns", "run_version"})
_encode = msgspec.msgpack.Encoder(order="sorted").encode
