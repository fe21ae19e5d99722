"""Purse: the budgets of the projects that are judged here, as spent so far. What was spent before this process is read once."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Protocol

from pipeline.judges.budget import NOTHING, Account, BudgetSettings
from pipeline.model import ids
from pipeline.model.time import DAY


class OverBudgetError(Exception):
    """The day's budget is spent, or reserved for calls in flight; the message says which budget."""


class Charges(Protocol):
    """Where it stands what calls have cost."""

    async def charged(self, project: str, since_ns: int, until_ns: int, partition: int, partitions: int) -> float:
        """Return the dollars of a project's calls in a time, of the runs of one partition of the judge's topic.

        A call whose cost nobody knows counts with the most that it can have cost.
        """
        ...


class Hold:
    """What is set aside for one call. It costs nothing unless ``spent`` says so in the end."""

    def __init__(self, most: Decimal) -> None:
        self.most = most
        self.spent = NOTHING


class Purse:
    """The accounts of one assignment of partitions: with another one begin another purse, for somebody else spent meanwhile."""

    def __init__(self, budget: BudgetSettings, charges: Charges, now: Callable[[], int], partitions: int = 1) -> None:
        self._budget = budget
        self._charges = charges
        self._now = now
        self._partitions = partitions
        self._accounts: dict[tuple[str, int, int], Account] = {}
        self._reading = asyncio.Lock()

    @asynccontextmanager
    async def holding(self, project: str, run_id: str, most: Decimal) -> AsyncIterator[Hold]:
        """Set aside the most that a call about a run can cost, in dollars, while the block lasts.

        Raises:
            OverBudgetError: there is not so much left.
        """
        hold = Hold(most)
        limit = self._budget.of(project)
        if limit is None:
            yield hold
            return
        day, partition = self._now() // DAY, ids.bucket(project, run_id) % self._partitions
        at = (project, day, partition)
        account = (await self._account(at, limit)).reserve(hold.most)
        if account is None:
            raise OverBudgetError(_why(self._accounts[at], limit, self._partitions))
        self._accounts[at] = account
        try:
            yield hold
        finally:
            self._accounts[at] = self._accounts[at].settle(hold.most, hold.spent)

    async def _account(self, at: tuple[str, int, int], limit: Decimal) -> Account:
        async with self._reading:
            if at not in self._accounts:
                project, day, partition = at
                spent = await self._charges.charged(project, day * DAY, (day + 1) * DAY, partition, self._partitions)
                self._accounts = {key: one for key, one in self._accounts.items() if key[1] >= day - 1}
                self._accounts[at] = Account(limit / self._partitions, Decimal(str(spent)))
        return self._accounts[at]


def _why(account: Account, limit: Decimal, partitions: int) -> str:
    share = f", of which this is one of {partitions} parts" if partitions > 1 else ""
    return f"of the {limit} dollars of the day{share}, {account.spent:.4f} are spent and {account.reserved:.4f} set aside"
