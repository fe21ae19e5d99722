"""Risk: what a bad output costs, and what it asks of a rubric (spec section 2.1)."""

from decimal import Decimal
from enum import StrEnum
from typing import Final

import msgspec

from pipeline.errors import ConfigurationError
from pipeline.model.rubric import CompositeKind, Rubric


class Risk(StrEnum):
    """What a bad output of an agent costs."""

    INTERNAL_DRAFT = "internal_draft"
    """A person reads it before it goes anywhere: composite ≥ 70."""
    CUSTOMER_FACING = "customer_facing"
    """A customer reads it: composite ≥ 80, with gates on correctness and on policy and safety."""
    MOVES_MONEY = "moves_money"
    """It moves money or changes data: composite ≥ 85, every dimension gated at 4."""


class _Demand(msgspec.Struct, frozen=True):
    bar: Decimal
    gates: dict[str, int] = {}
    """The least gate of these dimensions, which the rubric must have."""
    every: int = 0
    """The least gate of every dimension; 0 for none."""


_DEMANDS: Final = {
    Risk.INTERNAL_DRAFT: _Demand(Decimal(70)),
    Risk.CUSTOMER_FACING: _Demand(Decimal(80), {"correctness": 3, "policy_and_safety": 4}),
    Risk.MOVES_MONEY: _Demand(Decimal(85), every=4),
}
_SCALE: Final = (1, 5)


def at_risk(rubric: Rubric, risk: Risk | None) -> Rubric:
    """Return the rubric with the bar of the risk, and with at least its gates: a gate of the rubric's own is never lowered.

    Raises:
        ConfigurationError: the risk cannot be put on this rubric.
    """
    if risk is None:
        return rubric
    demand = _DEMANDS[risk]
    if rubric.composite is not CompositeKind.PERCENT or (rubric.scale_low, rubric.scale_high) != _SCALE:
        raise ConfigurationError(
            f"{risk} asks for a composite of {demand.bar} from 0 to 100 over scores from 1 to 5, and {rubric.name} has another one; "
            "remove risk, and write the bar in a rubric of your own"
        )
    known = {dimension.name for dimension in rubric.dimensions}
    missing = [name for name in demand.gates if name not in known]
    if missing:
        raise ConfigurationError(
            f"{risk} gates {' and '.join(missing)}, and {rubric.name} has no such dimension; add it, or remove risk and write the bar and "
            "the gates in the rubric"
        )
    dimensions = tuple(
        msgspec.structs.replace(one, gate=max(one.gate or 0, demand.gates.get(one.name, 0), demand.every) or None)
        for one in rubric.dimensions
    )
    return msgspec.structs.replace(rubric, bar=demand.bar, dimensions=dimensions)
