"""Spending: what the model calls of a run took, and what that cost (spec section 4.3)."""

from decimal import Decimal

import msgspec

from pipeline.model.step import Usage


class Billed(msgspec.Struct, frozen=True):
    """What one model call took, or an agent in total where no model call below it says.

    ``usage`` is None where nobody says. ``refused`` is why a provider turned the call away before it ran, so that it took nothing.
    """

    span_id: str
    model: str
    usage: Usage | None
    refused: str = ""


class Cost(msgspec.Struct, frozen=True):
    """What a run cost by the price table: exact dollars, or why they are not known. Never the sum of a part of it."""

    usd: Decimal | None = None
    unknown: str = ""
    """Empty where ``usd`` is known; else a word of :class:`~pipeline.scorers.check.Missing` and which call."""
    prices: str = ""
    """Version of the price table."""


class HandOff(msgspec.Struct, frozen=True):
    """Control of a run went from one of its agents to another, who answers for it from then on."""

    source: str
    target: str
