"""Gates: what people set up, and what all kinds have in common (design section 5, spec section 8).

The state machines are in ``gate_windows`` and ``gate_hard``. Neither reads a clock, and both can be rebuilt from the trips they wrote,
so a crash between any two writes loses no transition and repeats none.
"""

from collections.abc import Iterable
from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, FiniteFloat, model_validator

from pipeline.model.run import BACKFILL, Cohort
from pipeline.model.settings import Duration, Settings
from pipeline.model.time import DAY, HOUR, MINUTE
from pipeline.model.window import GateState, Trip
from pipeline.stages.window import slide_of

_LONGEST_NAME: Final = 80


def _one_line(name: str) -> str:
    if not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise ValueError(f"a gate's name is one printable line of at most {_LONGEST_NAME} characters; it is shown in every alert")
    return name


GateName = Annotated[str, AfterValidator(_one_line)]


class WindowGate(Settings):
    """What the gates that read windows have in common."""

    name: GateName
    agent: str | None = None
    """The agent it watches; every agent where it is not given."""
    dimension: str = "verdict"
    min_n: int = Field(default=10, ge=1)
    """Decided runs that a window needs to be read as a measurement."""
    min_n_effective: FiniteFloat = Field(default=10.0, ge=0)
    min_coverage: FiniteFloat = Field(default=0.8, ge=0, le=1)
    notify: tuple[str, ...] | None = None
    """Names of the alerts to send; all of them where it is not given, none where it is empty."""


class FloorGate(WindowGate):
    """Fires when a dimension's measure over a window is too low, clears when it has recovered for some windows in a row."""

    kind: Literal["floor"]
    measure: Literal["rate", "mean"] = "rate"
    """``rate``: weighted share of passes among the decided; ``mean``: weighted mean of the values."""
    raise_below: FiniteFloat
    clear_above: FiniteFloat
    """The least measure that counts as recovered. Above ``raise_below``, so that noise around one line does not flap."""
    window: Duration = 5 * MINUTE
    clear_windows: int = Field(default=3, ge=1)
    """Consecutive windows that must reach ``clear_above``."""

    @model_validator(mode="after")
    def _thresholds_make_sense(self) -> Self:
        if self.clear_above < self.raise_below:
            raise ValueError(
                f"clear_above ({self.clear_above}) is below raise_below ({self.raise_below}): the gate would clear while it still "
                f"fires; write clear_above: {self.raise_below} or more"
            )
        if self.measure == "rate" and not 0 < self.raise_below <= self.clear_above <= 1:
            raise ValueError("a rate lies between 0 and 1: write 0 < raise_below <= clear_above <= 1, such as 0.8 and 0.9")
        slide_of(self.window)
        return self

    @property
    def stride(self) -> int:
        """How far the windows that it reads are apart, in ns."""
        return slide_of(self.window)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths of the windows that it reads, in ns."""
        return (self.window,)


class BurnPair(Settings):
    """Two windows with one end: the long one says how bad it has been, the short one that it still is."""

    long: Duration = Field(gt=0)
    short: Duration = Field(gt=0)
    burn: FiniteFloat = Field(default=1.0, ge=1)
    """How many times the budget both have to fail."""

    @model_validator(mode="after")
    def _have_common_ends(self) -> Self:
        if self.short >= self.long or slide_of(self.long) % slide_of(self.short):
            raise ValueError(
                f"every {slide_of(self.long) / MINUTE:g} min a window of {self.long / MINUTE:g} min ends, and none of "
                f"{self.short / MINUTE:g} min that is shorter ends then; write a twelfth of long for short, such as 1h and 5m"
            )
        return self


class BurnRateGate(WindowGate):
    """Fires when more runs fail than the budget allows, beyond doubt and still now; clears when the budget is kept again for a while.

    Beyond doubt: the lower end of an interval of ``z`` standard errors (judging, section 5, rule F). A plain comparison of rates
    would fire dozens of times a month on an agent that keeps its budget.
    """

    kind: Literal["burn_rate"]
    min_n: int = Field(default=30, ge=1)
    """Decided runs that a long window needs to be read as a measurement. Of ten runs four that fail say less than they seem to."""
    budget: FiniteFloat = Field(gt=0, lt=1)
    """Share of the decided runs that may fail."""
    pairs: tuple[BurnPair, ...] = Field(
        default=(BurnPair(long=HOUR, short=5 * MINUTE), BurnPair(long=6 * HOUR, short=30 * MINUTE))
    )
    """Each pair can fire by itself."""
    z: FiniteFloat = Field(default=4.0, gt=0)
    """How many standard errors below the measured rate the lower end of its interval lies."""
    clear_at: FiniteFloat = Field(default=0.8, gt=0, le=1)
    """Share of the budget at which the shortest long window counts as recovered."""
    clear_after: Duration = Field(default=HOUR, gt=0)
    """How long it has to stay there."""

    @model_validator(mode="after")
    def _can_fire(self) -> Self:
        if not self.pairs:
            raise ValueError("no pair of windows is left; write at least one, such as {long: 1h, short: 5m}, or leave pairs out")
        for pair in self.pairs:
            if pair.burn * self.budget >= 1:
                raise ValueError(
                    f"burn {pair.burn:g} of a budget of {self.budget:g} means {pair.burn * self.budget:.0%} failing, which can never be "
                    f"exceeded: the gate could never fire; write a burn below {1 / self.budget:g}"
                )
        longest = max(slide_of(pair.long) for pair in self.pairs)
        if longest % slide_of(self.window):
            raise ValueError("the long windows have no common ends; write multiples of one another, such as 1h and 6h")
        return self

    @property
    def window(self) -> int:
        """The shortest long window: the one by whose ends the gate goes."""
        return min(pair.long for pair in self.pairs)

    @property
    def stride(self) -> int:
        """How far the windows that it reads are apart, in ns."""
        return slide_of(self.window)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths of the windows that it reads, in ns."""
        return tuple(sorted({length for pair in self.pairs for length in (pair.long, pair.short)}))

    @property
    def clear_windows(self) -> int:
        """How many windows in a row have to be recovered."""
        return -(-self.clear_after // slide_of(self.window))


class DriftGate(WindowGate):
    """Fires on a lasting rise of the failing share above the budget, however small, as soon as evidence has gathered (e-CUSUM).

    Slow and sure: it sees what a burn rate gate cannot, and an agent within its budget sets it off no sooner than ``false_alarm_every``
    on average.
    """

    kind: Literal["drift"]
    budget: FiniteFloat = Field(gt=0, lt=1)
    """Share of the decided runs that may fail."""
    window: Duration = 5 * MINUTE
    """Runs are counted by windows of this length, one after the other."""
    false_alarm_every: Duration = Field(default=90 * DAY, gt=0)
    """The least time between false alarms, on average."""
    clear_window: Duration = Field(default=6 * HOUR, gt=0)
    """Length of the windows that say whether it is over."""
    clear_at: FiniteFloat = Field(default=0.8, gt=0, le=1)
    """Share of the budget at which such a window counts as recovered."""
    clear_after: Duration = Field(default=HOUR, gt=0)
    """How long it has to stay there."""

    @model_validator(mode="after")
    def _windows_make_sense(self) -> Self:
        apart = sorted((self.window, slide_of(self.clear_window)))
        slide_of(self.window)
        if self.clear_window < self.window or self.clear_window % self.window or apart[1] % apart[0]:
            raise ValueError(
                "windows of both lengths do not end together; write a multiple of window for clear_window, such as 5m and 6h"
            )
        if self.false_alarm_every < 2 * self.window:
            raise ValueError("false_alarm_every is not even two windows long; write days, such as 90d")
        return self

    @property
    def stride(self) -> int:
        """How far the windows that it reads are apart, in ns: it counts no run twice."""
        return self.window

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths of the windows that it reads, in ns."""
        return tuple(sorted({self.window, self.clear_window}))

    @property
    def least_evidence(self) -> int:
        """The evidence at which it fires: as many windows as chance takes to come there on average."""
        return self.false_alarm_every // self.window

    @property
    def clear_windows(self) -> int:
        """How many windows in a row have to be recovered."""
        return -(-self.clear_after // max(self.window, slide_of(self.clear_window)))


SeriesGate = FloorGate | BurnRateGate | DriftGate
"""Gates that read the windows of one dimension, in event-time order."""


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


Gate = Annotated[SeriesGate | HardGate, Field(discriminator="kind")]


def lengths_of(gates: Iterable[SeriesGate | HardGate]) -> set[int]:
    """Return the lengths of the windows that gates read, in ns."""
    return {length for gate in gates if not isinstance(gate, HardGate) for length in gate.lengths}


class Turn(NamedTuple):
    """What a step of a gate gives: its state, what to write, and when to call it again if nothing happens before."""

    state: GateState
    trips: tuple[Trip, ...] = ()
    wake_at: int | None = None
    """On the gate's clock, in nanoseconds; None where silence changes nothing."""


def watches(gate: SeriesGate | HardGate, cohort: Cohort) -> bool:
    """Whether a gate looks at a cohort. Replayed history is nobody's incident."""
    return cohort.environment != BACKFILL and gate.agent in (None, cohort.agent)
