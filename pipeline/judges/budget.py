"""Budget: dollars that a project's judgments may cost in a day, reserved before each call. Pure: who asks brings the day.

A day is one of UTC. It is split evenly over the partitions of the judge's topic, so that the owner of a partition needs to ask nobody.
"""

from decimal import Decimal
from typing import Annotated, Final

import msgspec
from pydantic import Field

from pipeline.model.settings import Settings

NOTHING: Final = Decimal(0)

Dollars = Annotated[Decimal, Field(ge=0)]


class BudgetSettings(Settings):
    """What judging may cost in a day of UTC, in US dollars; without a number there is no limit."""

    per_day: Dollars | None = None
    """Of each project that is not named below."""
    projects: dict[Annotated[str, Field(min_length=1)], Dollars] = Field(default={})
    """Of single projects, by name."""

    def of(self, project: str) -> Decimal | None:
        """Return the dollars that a project has for a day; None where it may spend any."""
        return self.projects.get(project, self.per_day)

    @property
    def is_set(self) -> bool:
        """Whether anybody has a limit."""
        return self.per_day is not None or bool(self.projects)


class Account(msgspec.Struct, frozen=True):
    """The share that one partition has of one project's day, what is spent of it, and what the calls in flight may come to."""

    limit: Decimal
    spent: Decimal = NOTHING
    reserved: Decimal = NOTHING

    def reserve(self, most: Decimal) -> "Account | None":
        """Return the account with so much set aside; None where that is more than there is."""
        if self.spent + self.reserved + most > self.limit:
            return None
        return msgspec.structs.replace(self, reserved=self.reserved + most)

    def settle(self, most: Decimal, spent: Decimal) -> "Account":
        """Return the account after a call for which ``most`` was set aside has cost ``spent``."""
        return msgspec.structs.replace(self, reserved=self.reserved - most, spent=self.spent + spent)
