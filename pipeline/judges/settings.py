"""How judges are configured: the endpoint, the model, the calls, and what an uncalibrated score may do."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from pipeline.errors import ConfigurationError
from pipeline.judges.budget import BudgetSettings
from pipeline.judges.family import FAMILIES, family
from pipeline.model.settings import Duration, Settings
from pipeline.model.time import MINUTE, SECOND


def plain_address(url: str) -> str:
    """Return the address of an endpoint as it is written.

    Raises:
        ValueError: it is none, or holds a secret.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not an address; write one such as https://api.openai.com/v1")
    if parts.username or parts.password:
        raise ValueError("there is a user or password in the address; put the key into the variable that api_key_env names")
    return url


def _known_family(name: str) -> str:
    if name not in FAMILIES:
        raise ValueError(f"{name} is no family of models; write one of {', '.join(FAMILIES)}")
    return name


Address = Annotated[str, AfterValidator(plain_address)]
ModelId = Annotated[str, Field(pattern=r"^[^\s,]+$")]
"""As the endpoint knows the model; several of them are written with commas between."""


class Price(Settings):
    """What the judge's model costs, in US dollars per million tokens."""

    input_per_million: Annotated[Decimal, Field(ge=0)]
    output_per_million: Annotated[Decimal, Field(ge=0)]

    def cost(self, input_tokens: int, output_tokens: int) -> Decimal:
        """Return the dollars of so many tokens (spec section 4.3)."""
        return (self.input_per_million * input_tokens + self.output_per_million * output_tokens) / 1_000_000


class JudgeModelSettings(Settings):
    """A further model that judges: in a panel, or for agents of some family. What is left out is as for ``judge.model``."""

    base_url: Address | None = None
    """Where it is; at ``judge.base_url`` where nothing is written."""
    api_key_env: str | None = None
    """The variable that holds the key of this address. No key is ever sent to an address that it was not written for."""
    api_key_file: Path | None = None
    """A file that holds it."""
    timeout: Duration | None = None
    """Of one call."""
    requests_per_minute: Annotated[float, Field(gt=0)] | None = None
    """What its endpoint allows for this model."""
    tokens_per_minute: Annotated[float, Field(gt=0)] | None = None
    """What its endpoint allows for this model, prompts and replies together."""
    max_output_tokens: Annotated[int, Field(ge=64)] | None = None
    """Of one reply, thinking included."""
    price: Price | None = None
    """Without one the price table's holds."""

    @model_validator(mode="after")
    def _has_a_key_for_its_own_address(self) -> Self:
        if self.base_url is None and (self.api_key_env is not None or self.api_key_file is not None):
            raise ValueError("a key is written and no base_url; write the address that it is for, or remove the key")
        return self

    def beside(self, first: "JudgeSettings") -> dict[str, Any]:
        """Return what differs from the settings of ``judge.model``. Key and limits go with the address."""
        elsewhere = self.base_url not in (None, first.base_url)
        limits = {"requests_per_minute": None, "tokens_per_minute": None} if elsewhere else {}
        written = {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}
        keys = {"api_key_env": "", "api_key_file": None} if elsewhere or {"api_key_env", "api_key_file"} & written.keys() else {}
        return {"price": None, **limits, **keys, **written}


class JudgeSettings(Settings):
    """The section ``judge``."""

    base_url: Address | None = None
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
    models: dict[ModelId, JudgeModelSettings] = Field(default={})
    """Further models, by id: what a rubric's panel names and ``pairing`` names is ``model`` or stands here."""
    pairing: dict[Annotated[str, AfterValidator(_known_family)], str] = Field(default={})
    """By the family of an agent's models: the model of another family that judges its runs, in place of ``model``."""

    @field_validator("seeds")
    @classmethod
    def _differ(cls, seeds: tuple[int, int, int]) -> tuple[int, int, int]:
        if len(set(seeds)) < len(seeds):
            raise ValueError("the seeds are not all different; the same seed would only repeat a vote")
        return seeds

    @model_validator(mode="after")
    def _asks_an_allowed_host(self) -> Self:
        for name, url in {"": self.base_url, **{name: one.base_url for name, one in self.models.items()}}.items():
            host = urlsplit(url or "").hostname
            if self.allowed_hosts and host is not None and host not in self.allowed_hosts:
                at = f"models.{name}.base_url" if name else "base_url"
                raise ValueError(f"{at} is on {host}, and allowed_hosts are {', '.join(self.allowed_hosts)}; correct one of them")
        return self

    @model_validator(mode="after")
    def _names_its_model(self) -> Self:
        if self.base_url and not self.model:
            raise ValueError("base_url is set and model is not; write the id of the model that judges")
        if self.models and not self.base_url:
            raise ValueError("models are set and base_url is not; write where judge.model is, for without it nothing is judged")
        if self.model in self.models:
            raise ValueError(f"models names {self.model}, which is judge.model; write its settings at judge, and remove it there")
        return self

    @model_validator(mode="after")
    def _pairs_with_another_family(self) -> Self:
        for agents, model in self.pairing.items():
            if model not in self.ids:
                raise ValueError(f"pairing.{agents}: {self.unknown(model)}")
            if family(model) == agents:
                what = f"pairing.{agents} is {model}, which is of that family itself"
                raise ValueError(f"{what}; write a model of another one, for a judge is lenient with its own")
        return self

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all models that may be asked, that of ``model`` first."""
        return (self.model, *self.models)

    @property
    def at(self) -> str:
        """Where in the configuration its model is written."""
        return f"judge.models.{self.model}" if self.model in self.models else "judge"

    def unknown(self, model: str) -> str:
        """Return what to write where a model is named that is not configured."""
        return f"no endpoint is configured for {model}; write it under judge.models, as {{{model}: {{}}}} where it is at judge.base_url"

    def of(self, model: str) -> "JudgeSettings":
        """Return the settings of one of the models as if it were the only one.

        Raises:
            ConfigurationError: it is not configured.
        """
        if model == self.model:
            return self
        if model not in self.models:
            raise ConfigurationError(self.unknown(model))
        entry = self.models[model]
        return self.model_copy(update={**entry.beside(self), "model": model, "models": {model: entry}, "pairing": {}})
