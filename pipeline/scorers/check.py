"""Check: one rule about a run, and what it found. Runs in, code results out; no model is asked (spec section 3)."""

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from pydantic import AfterValidator

from pipeline.model.contract import Contract
from pipeline.model.result import Kind, Outcome, Result
from pipeline.model.run import Run


class Missing(StrEnum):
    """Why a check could not tell: the first word of the reason of every undecided code result."""

    ANSWER_NOT_CAPTURED = "answer_not_captured"
    CALLS_NOT_CAPTURED = "calls_not_captured"
    EXECUTION_NOT_CAPTURED = "execution_not_captured"
    """A model asked for the call, and the run shows no execution of any tool: it may have happened out of sight."""
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
    TIMES_NOT_CAPTURED = "times_not_captured"


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


class Check(msgspec.Struct, frozen=True):
    """A named rule under its contract. ``gates``: a fail is a fail of the run, and no average cancels it."""

    name: str
    contract: str
    measure: Measure
    gates: bool = False
    terms: Contract | None = None
    """What the contract's hash stands for; None for a check that only names it."""

    def score(self, run: Run) -> Result | None:
        """Return what the rule says of the run; None where it does not apply: absent, never 1 (spec section 1)."""
        finding = self.measure(run)
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
