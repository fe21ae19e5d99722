"""How judges are configured: the endpoint, the model, the calls, and what an uncalibrated score may do."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from pipeline.judges.budget import BudgetSettings
from pipeline.model.settings import Duration, Settings
from pipeline.model.time import MINUTE, SECOND


class Price(Settings):
    """What the judge's model costs, in US dollars per million tokens."""

    input_per_million: Annotated[Decimal, Field(ge=0)]
    output_per_million: Annotated[Decimal, Field(ge=0)]

    def cost(self, input_tokens: int, output_tokens: int) -> Decimal:
        """Return the dollars of so many tokens (spec section 4.3)."""
        return (self.input_per_million * input_tokens + self.output_per_million * output_tokens) / 1_000_000


class JudgeSettings(Settings):
    """The section ``judge``."""

    base_url: str | None = None
    """Any OpenAI-compatible endpoint, such as https://api.openai.com/v1; without one nothing is judged."""
    model: str = ""
    """Id of the model that judges, as the endpoint knows it."""
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable that holds the endpoint's key; unset for endpoints that need none."""
    api_key_file: Path | None = None
    """A file that holds the key, in place of the variable; a new key in it is taken up without a restart."""
    allowed_hosts: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """The hosts that transcripts may go to; any, where none is written."""
    opted_out: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Projects of which nothing is ever shown to a judge."""
    connect_timeout: Duration = 5 * SECOND
    """Of a connection to the endpoint."""
    timeout: Duration = MINUTE
    """Of one call."""
    deadline: Duration = 15 * MINUTE
    """From the request of a judgment; afterwards it is expired."""
    concurrency: Annotated[int, Field(ge=1)] = 8
    """Calls of one process in flight at once."""
    requests_per_minute: Annotated[float, Field(gt=0)] | None = None
    """What the endpoint allows; judge processes share it by their partitions."""
    tokens_per_minute: Annotated[float, Field(gt=0)] | None = None
    """What the endpoint allows, prompts and replies together; likewise shared."""
    max_output_tokens: Annotated[int, Field(ge=64)] = 2048
    """Of one reply, thinking included. A reply that was cut there is asked for once more with four times as many."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    """Of the votes on gated dimensions; single calls use 0."""
    seeds: tuple[int, int, int] = (11, 23, 47)
    """One for each vote on a gated dimension; all different."""
    uncalibrated: Literal["show", "decide"] = "show"
    """Whether scores of a judge that nobody has compared with people are only shown, or decide."""
    calibration: Path | None = None
    """File that says what the judge has earned, by contract and dimension."""
    price: Price | None = None
    """Without one the price table's holds; for a model that is not in it the cost of judgments is unknown."""
    budget: BudgetSettings = BudgetSettings()
    """What judging may cost in a day."""
    transcript_budget: Annotated[int, Field(ge=1000)] = 24_000
    """Characters of a transcript; a longer one is cut by rule."""

    @field_validator("base_url")
    @classmethod
    def _is_a_plain_address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not an address; write one such as https://api.openai.com/v1")
        if parts.username or parts.password:
            raise ValueError("there is a user or password in the address; put the key into the variable that api_key_env names")
        return url

    @field_validator("seeds")
    @classmethod
    def _differ(cls, seeds: tuple[int, int, int]) -> tuple[int, int, int]:
        if len(set(seeds)) < len(seeds):
            raise ValueError("the seeds are not all different; the same seed would only repeat a vote")
        return seeds

    @model_validator(mode="after")
    def _asks_an_allowed_host(self) -> Self:
        host = urlsplit(self.base_url or "").hostname
        if self.allowed_hosts and host is not None and host not in self.allowed_hosts:
            raise ValueError(f"base_url is on {host}, and allowed_hosts are {', '.join(self.allowed_hosts)}; correct one of them")
        return self

    @model_validator(mode="after")
    def _names_its_model(self) -> Self:
        if self.base_url and not self.model:
            raise ValueError("base_url is set and model is not; write the id of the model that judges")
        return self
