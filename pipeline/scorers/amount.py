"""An amount in the answer against the one that a tool returned: decimals, to the cent (spec section 3).

That the answer names the right amount says nothing of whether it was paid: for that there are record sources.
"""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from pipeline.model.run import Run
from pipeline.model.settings import Settings
from pipeline.model.step import ToolCall
from pipeline.scorers.calls import describe, number, shows_execution
from pipeline.scorers.check import Finding, Missing, ruled, unknown
from pipeline.scorers.json_values import at, parsed, unfenced
from pipeline.scorers.predicates import Number

_NUMERAL: Final = {
    mark: rf"-?[0-9]+(?:[ '\u00a0\u202f{other}][0-9]{{3}})*(?:[{mark}][0-9]+)?(?!\w)" for mark, other in ((".", ","), (",", "."))
}
"""Amounts as people write them, by what stands before the cents."""


class SourceSettings(Settings):
    """A value that a tool returned."""

    tool: str
    """The tool; its last call that succeeded counts."""
    field: str = ""
    """Where the value stands in the result, which is JSON; a dotted name looks inside. Empty where the result is the number itself."""


class AmountSettings(Settings):
    """Which amount of the answer must be which value."""

    after: str = ""
    """The amounts right behind this text, such as ``$``; in whatever case."""
    field: str = ""
    """The field of an answer that is JSON; a dotted name looks inside."""
    decimal_mark: Literal[".", ","] = "."
    """What stands before the cents in the answer's text."""
    equals: SourceSettings
    """The value that it must be."""
    within: Annotated[Number, Field(ge=0)] = Decimal("0.005")
    """The greatest difference that is still equal."""

    @model_validator(mode="after")
    def _names_one_place(self) -> Self:
        if bool(self.after) == bool(self.field):
            raise ValueError("the amount's place is not clear; write exactly one of after, such as `after: $`, and field")
        return self


def amount_rule(settings: AmountSettings) -> Callable[[Run, str], Finding]:
    """Return the rule that every amount at the place equals the source's value."""

    def rule(run: Run, answer: str) -> Finding:
        source = _source(settings.equals, run)
        if isinstance(source, Finding):
            return source
        value, call = source
        amounts = tuple(_amounts(settings, answer))
        if not amounts:
            return ruled(holds=False, reason=f"the answer names no amount; {settings.equals.tool} returned {value}")
        wrong = next((amount for amount in amounts if abs(amount - value) > settings.within), None)
        if wrong is None:
            return ruled(holds=True, evidence=describe(call))
        return ruled(
            holds=False, reason=f"the answer says {wrong}, {settings.equals.tool} returned {value}", evidence=describe(call)
        )

    return rule


def _source(settings: SourceSettings, run: Run) -> tuple[Decimal, ToolCall] | Finding:
    calls = [call for call in run.tool_calls if call.name == settings.tool]
    call = next((call for call in reversed(calls) if call.error is None), None)
    if call is None:
        missing = Missing.EXECUTION_NOT_CAPTURED if calls and not shows_execution(calls) else Missing.RESULTS_NOT_CAPTURED
        return unknown(missing, f"no call of {settings.tool} succeeded")
    if call.result is None:
        return unknown(Missing.RESULTS_NOT_CAPTURED, f"call of {settings.tool}")
    try:
        value = parsed(call.result)
    except ValueError:
        value = call.result
    found = at(value, settings.field) if settings.field else value
    exact = number(found)
    if exact is None:
        return unknown(Missing.RESULTS_NOT_COMPARABLE, f"{settings.tool} returned no number at {settings.field or 'all'}")
    return exact, call


def _amounts(settings: AmountSettings, answer: str) -> Iterator[Decimal]:
    if settings.field:
        try:
            value = at(parsed(unfenced(answer)), settings.field)
        except ValueError:
            return
        exact = number(value)
        if exact is not None:
            yield exact
        return
    for found in re.finditer(rf"{re.escape(settings.after)}\s*({_NUMERAL[settings.decimal_mark]})", answer, re.IGNORECASE):
        yield _written(found[1], settings.decimal_mark)


def _written(numeral: str, mark: str) -> Decimal:
    """Read a numeral as people write amounts: ``1,234.50``, ``1.234,50``, ``1 234``."""
    whole, _, fraction = numeral.partition(mark)
    digits = re.sub(r"[^0-9-]", "", whole)
    return Decimal(f"{digits}.{fraction or '0'}")
