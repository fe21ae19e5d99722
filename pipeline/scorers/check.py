"""Check: one rule about a run, and what it found. Runs in, code results out; no model is asked (spec section 3)."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from pydantic import AfterValidator

from pipeline.model.contract import Contract
from pipeline.model.evidence import Evidence, Question
from pipeline.model.result import Kind, Outcome, Result
from pipeline.model.run import Run


class Missing(StrEnum):
    """Why a check could not tell: the first word of the reason of every undecided code result."""

    ANSWER_NOT_CAPTURED = "answer_not_captured"
    CALLS_NOT_CAPTURED = "calls_not_captured"
    EXECUTION_NOT_CAPTURED = "execution_not_captured"
    """A model asked for the call, and the run shows no execution of any tool: it may have happened out of sight."""
    MESSAGES_NOT_CAPTURED = "messages_not_captured"
    ARGUMENTS_NOT_CAPTURED = "arguments_not_captured"
    ARGUMENTS_NOT_COMPARABLE = "arguments_not_comparable"
    """The argument is there, but is not of a kind that the rule can compare."""
    RESULTS_NOT_CAPTURED = "results_not_captured"
    TOOLS_NOT_CAPTURED = "tools_not_captured"
    SCHEMA_NOT_CAPTURED = "schema_not_captured"
    SCHEMA_UNUSABLE = "schema_unusable"
    RESULTS_NOT_COMPARABLE = "results_not_comparable"
    """The result is there, but holds no value of the kind that the rule compares."""
    LANGUAGE_NOT_CLEAR = "language_not_clear"
    USAGE_NOT_CAPTURED = "usage_not_captured"
    PRICE_UNKNOWN = "price_unknown"
    """The price table has no price for a model, or for something that it did."""
    TIMES_NOT_CAPTURED = "times_not_captured"
    RECORD_NOT_READ = "record_not_read"
    """A record source was down, slow, or answered badly."""
    RECORD_NOT_COMPARABLE = "record_not_comparable"
    """What was read is not of the kind that the rule compares: a field is missing, or is no number."""
    TOO_MANY_READS = "too_many_reads"


def _named(name: str) -> str:
    if re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name) is None:
        raise ValueError(
            f"{name!r} cannot name a check; write lower-case letters, digits and underscores, such as refund_after_confirm"
        )
    return name


CheckName = Annotated[str, AfterValidator(_named)]
"""The name of a declared check, and of its dimension."""


class Finding(msgspec.Struct, frozen=True):
    """What a rule found in one run. ``value``, ``lower`` and ``upper`` as in :class:`~pipeline.model.result.Result`."""

    outcome: Outcome
    value: float | None
    lower: float | None
    upper: float | None
    reason: str = ""
    evidence: str = ""


Measure = Callable[[Run], Finding | None]
"""A pure function of the run; None where the rule does not apply to it."""
MeasureWithReads = Callable[[Run, Mapping[str, Evidence]], Finding | None]
"""The same of the run and of what was read for it, by the id of the question."""


def _nothing(_: Run) -> tuple[Question, ...]:
    return ()


class Check(msgspec.Struct, frozen=True):
    """A named rule under its contract. ``gates``: a fail is a fail of the run, and no average cancels it."""

    name: str
    contract: str
    measure: Measure
    gates: bool = False
    terms: Contract | None = None
    """What the contract's hash stands for; None for a check that only names it."""
    questions: Callable[[Run], tuple[Question, ...]] = _nothing
    """What record sources are to be asked before the rule can say anything."""
    with_reads: MeasureWithReads | None = None
    """What the rule says of a run and of what was read for it; None for a rule that reads nothing."""
    is_safety: bool = False
    """Whether it counts in the safety of a quality score (spec section 5)."""
    is_schema: bool = False
    """Whether it is of the form of the answer, and counts as a schema check of a quality score."""

    def asks(self, run: Run) -> tuple[Question, ...]:
        """Return what record sources are to be asked; nothing where the rule breaks on the run, for then it says so when it is scored."""
        try:
            return self.questions(run)
        except Exception:  # noqa: BLE001 - whatever a check raises costs this one dimension
            return ()

    def score(self, run: Run, reads: Mapping[str, Evidence] | None = None) -> Result | None:
        """Return what the rule says of the run; None where it does not apply: absent, never 1 (spec section 1)."""
        finding = self.measure(run) if self.with_reads is None else self.with_reads(run, reads or {})
        if finding is None:
            return None
        return Result(
            dimension=self.name,
            kind=Kind.CODE,
            contract=self.contract,
            outcome=finding.outcome,
            value=finding.value,
            lower=finding.lower,
            upper=finding.upper,
            reason=finding.reason,
            evidence=finding.evidence,
        )


def check_of(name: str, definition: dict[str, Any], measure: Measure, *, gates: bool = False) -> Check:
    """Return a check under the contract of its definition."""
    terms = Contract(kind="code", dimension=name, check_definition=definition)
    return Check(name, terms.hash, measure, gates=gates, terms=terms)


def contract_of(name: str, definition: dict[str, Any]) -> str:
    """Return the contract hash of a code check: it changes with what is counted and how, not with whether it gates."""
    return Contract(kind="code", dimension=name, check_definition=definition).hash


def measured(value: float, *, holds: bool, reason: str = "", evidence: str = "") -> Finding:
    """Return a finding that was measured: the value is known, and the rule holds or does not."""
    return Finding(Outcome.PASS if holds else Outcome.FAIL, value, value, value, reason, evidence)


def ruled(holds: bool, reason: str = "", evidence: str = "") -> Finding:
    """Return the finding of a rule that only holds or does not: 1 or 0."""
    return measured(1.0 if holds else 0.0, holds=holds, reason=reason, evidence=evidence)


def unknown(missing: Missing, why: str, *, lower: float | None = 0.0, upper: float | None = 1.0) -> Finding:
    """Return that the evidence was not there: no value, only its bounds. ``upper`` is None where the scale has no end."""
    return Finding(Outcome.INSUFFICIENT_EVIDENCE, None, lower, upper, f"{missing}: {why}")
