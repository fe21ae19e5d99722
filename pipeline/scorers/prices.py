"""Prices: a dated table of what models' tokens cost, and what a configuration adds to it (spec section 4.3)."""

import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field
from ruamel.yaml import YAML

from pipeline.model import ids
from pipeline.model.settings import Settings

SHIPPED: Final = Path(__file__).parent / "prices.yaml"
MILLION: Final = 1_000_000
_DATED: Final = re.compile(r"(?P<model>.+?)[-@](?:\d{4}-\d{2}-\d{2}|\d{8})")
"""How vendors name the version of a model: ``gpt-4o-2024-08-06``, ``claude-haiku-4-5-20251001``, ``claude-haiku-4-5@20251001``."""
_NAMES_KEPT: Final = 1024

Dollars = Annotated[Decimal, Field(ge=0, lt=1_000_000, decimal_places=6), AfterValidator(Decimal.normalize)]
"""US dollars per million tokens, exactly as written."""


class PriceSettings(Settings):
    """What a model's tokens cost, in US dollars per million."""

    input: Dollars
    """Of input tokens that are neither read from a cache nor written to one."""
    output: Dollars
    """Of output tokens, reasoning included."""
    cached_input: Dollars | None = None
    """Of input tokens read from a cache. Without it, calls that read from one have no known cost."""
    cache_write: Dollars | None = None
    """Of input tokens written to a cache. Without it, calls that wrote to one have no known cost."""
    up_to_input: Annotated[int, Field(ge=1)] | None = None
    """The most input tokens of a call that is priced so; a longer one has no known cost."""


ModelName = Annotated[str, Field(min_length=1)]


class PricesSettings(Settings):
    """The section ``prices``: what is added to the price table that ships, and what replaces entries of it."""

    models: dict[ModelName, PriceSettings | None] = Field(default={})
    """By the model's name as its spans give it; ``null`` for one whose price is not known."""
    aliases: dict[ModelName, ModelName] = Field(default={})
    """Other names of models that have a price, such as those of deployments."""


class _ShippedPrices(PricesSettings):
    """The file that ships."""

    as_of: date
    prefixes: tuple[str, ...]


class PriceTable:
    """The prices that hold in an installation, and their version."""

    def __init__(self, own: PricesSettings | None = None) -> None:
        """Lay a configuration's own prices over those that ship."""
        shipped = _shipped()
        own = own or PricesSettings()
        self._prefixes = shipped.prefixes
        self._models: Mapping[str, PriceSettings | None] = {**shipped.models, **own.models}
        self._aliases: Mapping[str, str] = {**shipped.aliases, **own.aliases}
        self.as_of: Final = shipped.as_of
        """When the prices that ship were taken down."""
        self.version: Final = f"{shipped.as_of.isoformat()}-{ids.digest(4, *self._said())}"
        """The date, and a hash of all that the table says: of one version all prices are the same."""
        self.of = lru_cache(maxsize=_NAMES_KEPT)(self._of)

    def _of(self, model: str) -> PriceSettings | None:
        """Return what a model costs, None where that is not known.

        Found under its name; else under the name that it is an alias of; else in the same way without the date at its end; else without one
        of the table's prefixes. Nothing else is guessed: the name of another model may begin like it.
        """
        for name in (model, *(model.removeprefix(one) for one in self._prefixes if model.startswith(one))):
            dated = _DATED.fullmatch(name)
            for known in (name, dated["model"]) if dated else (name,):
                if known in self._models:
                    return self._models[known]
                if known in self._aliases:
                    return self._models.get(self._aliases[known])
        return None

    def _said(self) -> list[str]:
        prices = [f"{name} {price.model_dump_json() if price else None}" for name, price in sorted(self._models.items())]
        return [*prices, *(f"{name} = {other}" for name, other in sorted(self._aliases.items())), *self._prefixes]


@cache
def _shipped() -> _ShippedPrices:
    return _ShippedPrices.model_validate(YAML(typ="safe").load(SHIPPED))
