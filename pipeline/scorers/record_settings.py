"""What a record check is told: which records are a call's, how many there must be, and what they must say (spec section 3)."""

from decimal import Decimal
from typing import Annotated, Self

from pydantic import Field, model_validator

from pipeline.model.settings import Settings
from pipeline.scorers.check import CheckName
from pipeline.scorers.predicates import Number, Predicate
from pipeline.scorers.reading import CallPath, ReadSettings


class CountSettings(Settings):
    """How many records there must be. Without it there must be one for each call."""

    exactly: Annotated[int, Field(ge=0)] | None = None
    """So many, neither more nor less."""
    at_least: Annotated[int, Field(ge=0)] | None = None
    """So many or more."""
    at_most: Annotated[int, Field(ge=0)] | None = None
    """So many or fewer."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("the count is empty; write one of exactly, at_least, at_most")
        return self

    def allows(self, count: int) -> bool:
        """Whether there may be so many."""
        wanted = self.exactly is None or count == self.exactly
        return wanted and (self.at_least is None or count >= self.at_least) and (self.at_most is None or count <= self.at_most)

    @property
    def spoken(self) -> str:
        """The limits, in words."""
        limits = {"exactly": self.exactly, "at least": self.at_least, "at most": self.at_most}
        return " and ".join(f"{words} {limit}" for words, limit in limits.items() if limit is not None)


class MoneySettings(Settings):
    """An amount in the records against one in the calls, by decimals."""

    field: str
    """Where it stands in a record; a dotted name looks inside."""
    equals: CallPath
    """Where it stands in the call."""
    within: Annotated[Number, Field(ge=0)] = Decimal("0.005")
    """The greatest difference that is still equal."""


class RecordSettings(ReadSettings):
    """One check of what a record source says."""

    name: CheckName
    """Its own name; results, windows and gates know the check by it."""
    records: str = ""
    """Where the records stand in what was read; a dotted name looks inside. Nothing where it is one record, or a list of them."""
    identity: dict[str, CallPath] = Field(default={})
    """Which of the records are the call's: fields, each with the place in the call whose value it has."""
    count: CountSettings | None = None
    """How many of those there must be; one for each call where nothing is written."""
    unique: tuple[str, ...] = ()
    """Fields in which no two of them are alike."""
    amount: MoneySettings | None = None
    """The amount that each call has a record of."""
    state: dict[str, Predicate] = Field(default={})
    """What fields of every one of them must be."""
    gate: bool = True
    """Set to false to measure it only."""
    safety: bool = False
    """Set to true where it is a matter of safety: it is in the safety of a quality score then."""
