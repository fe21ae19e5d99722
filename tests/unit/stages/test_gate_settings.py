"""What people may write about gates, and what they are told when it makes no sense."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from pipeline.model.run import BACKFILL, Cohort
from pipeline.model.time import HOUR, MINUTE
from pipeline.stages.gate import BurnRateGate, DriftGate, FloorGate, Gate, HardGate, watches

GATES: TypeAdapter[FloorGate | BurnRateGate | DriftGate | HardGate] = TypeAdapter(Gate)
FLOOR = {"name": "verdicts", "kind": "floor", "raise_below": 0.8, "clear_above": 0.9}


def test_the_kind_decides_which_gate_it_is() -> None:
    assert isinstance(GATES.validate_python(FLOOR), FloorGate)
    assert isinstance(GATES.validate_python({"name": "no refunds", "kind": "hard"}), HardGate)


def test_what_is_not_written_has_the_documented_default() -> None:
    floor = FloorGate.model_validate(FLOOR)
    assert (floor.dimension, floor.measure, floor.window, floor.notify) == ("verdict", "rate", 5 * MINUTE, None)
    assert HardGate(name="a", kind="hard").quiet == HOUR


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"clear_above": 0.7}, "write clear_above: 0.8 or more"),
        ({"clear_above": 1.2}, "a rate lies between 0 and 1"),
        ({"raise_below": 0.0}, "a rate lies between 0 and 1"),
        ({"window": "90s"}, "whole number of minutes"),
        ({"window": "soon"}, "is not a duration"),
        ({"name": "two\nlines"}, "one printable line"),
        ({"name": " "}, "one printable line"),
        ({"raise_below": float("nan")}, "finite"),
        ({"min_n": 0}, "greater than or equal to 1"),
        ({"quiet": "1h"}, "Extra inputs"),
    ],
)
def test_a_floor_gate_that_makes_no_sense_is_refused_with_a_sentence(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        GATES.validate_python(FLOOR | changed)


def test_a_mean_may_have_thresholds_on_its_own_scale() -> None:
    assert FloorGate.model_validate(FLOOR | {"measure": "mean", "raise_below": 60, "clear_above": 75}).clear_above == 75


def test_a_hard_gate_needs_a_quiet_time() -> None:
    with pytest.raises(ValidationError):
        GATES.validate_python({"name": "a", "kind": "hard", "quiet": "0s"})


def test_a_gate_watches_its_agent_or_all_and_never_replayed_history() -> None:
    every, one = HardGate(name="a", kind="hard"), HardGate(name="a", kind="hard", agent="refunds")
    refunds, orders = Cohort("refunds", "1", "production"), Cohort("orders", "1", "production")
    assert [watches(gate, cohort) for gate in (every, one) for cohort in (refunds, orders)] == [True, True, True, False]
    assert not watches(every, Cohort("refunds", "1", BACKFILL))
