"""Gates: what people set up, and what floor gates and hard gates have in common (design section 5, spec section 8).

The state machines are in ``gate_floor`` and ``gate_hard``. Neither reads a clock, and both can be rebuilt from the trips they wrote,
so a crash between any two writes loses no transition and repeats none.
"""

from typing import Annotated, Final, Literal, NamedTuple

from pydantic import AfterValidator, Field, FiniteFloat, model_validator

from pipeline.model.run import BACKFILL, Cohort
from pipeline.model.settings import Duration, Settings
from pipeline.model.time import HOUR, MINUTE
from pipeline.model.window import GateState, Trip
from pipeline.stages.window import slide_of

_LONGEST_NAME: Final = 80


def _one_line(name: str) -> str:
    if not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise ValueError(f"a gate's name is one printable line of at most {_LONGEST_NAME} characters; it is shown in every alert")
    return name


GateName = Annotated[str, AfterValidator(_one_line)]


class FloorGate(Settings):
    """Fires when a dimension's measure over a window is too low, clears when it has recovered for some windows in a row."""

    name: GateName
    kind: Literal["floor"]
    agent: str | None = None
    """The agent it watches; every agent where it is not given."""
    dimension: str = "verdict"
    measure: Literal["rate", "mean"] = "rate"
    """``rate``: weighted share of passes among the decided; ``mean``: weighted mean of the values."""
    raise_below: FiniteFloat
    clear_above: FiniteFloat
    """The least measure that counts as recovered. Above ``raise_below``, so that noise around one line does not flap."""
    window: Duration = 5 * MINUTE
    min_n: int = Field(default=10, ge=1)
    """Decided runs that a window needs to be read as a measurement."""
    min_n_effective: FiniteFloat = Field(default=10.0, ge=0)
    min_coverage: FiniteFloat = Field(default=0.8, ge=0, le=1)
    clear_windows: int = Field(default=3, ge=1)
    """Consecutive windows that must reach ``clear_above``."""
    notify: tuple[str, ...] | None = None
    """Names of the alerts to send; all of them where it is not given, none where it is empty."""

    @model_validator(mode="after")
    def _thresholds_make_sense(self) -> "FloorGate":
        if self.clear_above < self.raise_below:
            raise ValueError(
                f"clear_above ({self.clear_above}) is below raise_below ({self.raise_below}): the gate would clear while it still "
                f"fires; write clear_above: {self.raise_below} or more"
            )
        if self.measure == "rate" and not 0 < self.raise_below <= self.clear_above <= 1:
            raise ValueError("a rate lies between 0 and 1: write 0 < raise_below <= clear_above <= 1, such as 0.8 and 0.9")
        slide_of(self.window)
        return self


class HardGate(Settings):
    """Fires on a single failing run, sampled or not, and clears after a time without another."""

    name: GateName
    kind: Literal["hard"]
    agent: str | None = None
    """The agent it watches; every agent where it is not given."""
    dimensions: tuple[str, ...] | None = None
    """The checks it watches; every gating check where it is not given."""
    quiet: Duration = Field(default=HOUR, gt=0)
    """How long no run may fail before the incident is over."""
    notify: tuple[str, ...] | None = None
    """Names of the alerts to send; all of them where it is not given, none where it is empty."""


Gate = Annotated[FloorGate | HardGate, Field(discriminator="kind")]


class Turn(NamedTuple):
    """What a step of a gate gives: its state, what to write, and when to call it again if nothing happens before."""

    state: GateState
    trips: tuple[Trip, ...] = ()
    wake_at: int | None = None
    """On the gate's clock, in nanoseconds; None where silence changes nothing."""


def watches(gate: FloorGate | HardGate, cohort: Cohort) -> bool:
    """Whether a gate looks at a cohort. Replayed history is nobody's incident."""
    return cohort.environment != BACKFILL and gate.agent in (None, cohort.agent)
