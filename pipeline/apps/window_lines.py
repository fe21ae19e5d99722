"""Windows in lines, as the API and the command line tell them: a rate is never without what belongs beside it."""

from collections.abc import Iterable
from typing import Final

import msgspec

from pipeline.errors import ConfigurationError
from pipeline.judges.calibration import Calibration
from pipeline.model.rate import Rate
from pipeline.model.result import Kind
from pipeline.model.run import Cohort
from pipeline.model.settings import duration
from pipeline.model.window import Window
from pipeline.stages.window import rate_of

NOTHING_EARNED: Final = Calibration()


class WindowLine(msgspec.Struct, frozen=True):
    """A dimension of a cohort over [start, start + length) of event time, under one contract."""

    cohort: Cohort
    dimension: str
    kind: str
    contract: str
    start_ns: int
    length_ns: int
    rate: Rate
    mean: float | None
    """Weighted mean of the values, on the dimension's own scale."""
    mean_low: float | None
    mean_high: float | None
    authority: str = ""
    """What the judge has earned under this contract; empty for what code measured."""


def lines_of(windows: Iterable[Window], earned: Calibration = NOTHING_EARNED) -> list[WindowLine]:
    """Return windows in lines, with what the judge has earned as of now."""
    return [
        WindowLine(
            cohort=one.series.cohort,
            dimension=one.series.dimension,
            kind=one.series.kind,
            contract=one.series.contract,
            start_ns=one.start_ns,
            length_ns=one.length_ns,
            rate=rate_of(one),
            mean=one.mean,
            mean_low=one.mean_low,
            mean_high=one.mean_high,
            authority=earned.authority_of(one.series.contract, one.series.dimension) if one.series.kind == Kind.JUDGED else "",
        )
        for one in windows
    ]


def length_of(text: str) -> int:
    """Return the length of a window in ns.

    Raises:
        ConfigurationError: it is no duration.
    """
    try:
        return duration(text)
    except ValueError as error:
        raise ConfigurationError(f"length: {error}") from None
