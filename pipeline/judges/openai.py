"""The judge's model behind any OpenAI-compatible endpoint; the only place that imports ``openai``."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, Final, Self

import msgspec
import openai

from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.judges.ability import Ability, Refusal
from pipeline.judges.completion import read
from pipeline.judges.key import Key
from pipeline.judges.model import ChatRequest, Reply, UnansweredError
from pipeline.judges.settings import JudgeSettings
from pipeline.model.time import SECOND

_TEMPORARY: Final = frozenset({408, 409, 425, 429})
_FOR_A_PERSON: Final = frozenset({401, 402, 403, 404})
_CODES: Final = {"invalid_api_key": 401, "model_not_found": 404}
"""What some endpoints say under another status."""
_OUT_OF_MONEY: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})

Learned = Callable[[Ability], Awaitable[None]]


async def _nobody_learns(_: Ability) -> None:
    """Stand where what an endpoint can do is found out anew by every process."""


class OpenAIModel:
    """Asks one model at one endpoint. It never retries by itself: who waits, and until when, is the runtime's to say.

    What the endpoint takes is found out by the first calls that it answers; ``known`` is what was learned of it before, and
    ``learned`` is told of what is new.
    """

    def __init__(
        self,
        settings: JudgeSettings,
        environ: Mapping[str, str],
        known: Ability | None = None,
        learned: Learned = _nobody_learns,
    ) -> None:
        if settings.base_url is None:
            raise ConfigurationError("no judge is configured: write its endpoint as judge.base_url")
        self._settings = settings
        self._key = Key(settings, environ)
        self._seconds = settings.timeout / SECOND
        self._known = known
        self._learned = learned
        self._client = openai.AsyncOpenAI(
            base_url=settings.base_url,
            api_key=self._key.read(),
            max_retries=0,
            timeout=openai.Timeout(self._seconds, connect=min(self._seconds, settings.connect_timeout / SECOND)),
            # A redirect would carry transcripts to a host that nobody configured.
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
        )

    async def __aenter__(self) -> Self:
        """Nothing is opened before the first question."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self._client.close()

    @property
    def ability(self) -> Ability | None:
        """What the endpoint is known to take; None before it answered anything."""
        return self._known

    async def ask(self, request: ChatRequest) -> Reply:
        """Ask once, or once for each thing that the endpoint does not take until it takes the rest (:class:`pipeline.judges.model.JudgeModel`)."""
        trying: Ability = self._known or Ability()
        while True:
            try:
                reply = read(self._key.masked(await self._create(request, trying)))
            except openai.APIStatusError as error:
                milder = self._milder(trying, error)
                if milder is None:
                    raise self._meaning(error) from error
                trying = milder
            else:
                await self._remember(trying, reply)
                return reply

    def _milder(self, tried: Ability, error: openai.APIStatusError) -> Ability | None:
        refusal = Refusal(error.status_code, f"{error.param or ''} {error.message}")
        if not refusal.is_one or _is_for_a_person(error) or (self._known is not None and not refusal.is_named):
            return None
        return tried.without(refusal)

    async def _remember(self, tried: Ability, reply: Reply) -> None:
        """Only success says something about what an endpoint takes: an outage refuses everything."""
        learned = msgspec.structs.replace(tried, usage=reply.input_tokens is not None and reply.output_tokens is not None)
        if learned != self._known:
            self._known = learned
            with suppress(TemporaryError):  # an answer that is paid must not be lost for it; the next start finds out again
                await self._learned(learned)

    async def _create(self, request: ChatRequest, ability: Ability) -> bytes:
        messages: Any = [{"role": message.role, "content": message.text} for message in request.messages]
        # As they are: the client would refuse what it does not know of, such as a schema beside json_object.
        wishes = ability.body(request.schema, request.most_tokens, request.seed, request.temperature)
        self._client.api_key = self._key.read()
        try:
            # The client's timeout is for each read; an endpoint that sends a byte a second would never meet it.
            async with asyncio.timeout(self._seconds):
                completions = self._client.chat.completions.with_raw_response
                return bytes((await completions.create(model=self._settings.model, messages=messages, extra_body=wishes)).content)
        except openai.APIConnectionError as error:
            raise self._unreached(error) from error
        except TimeoutError as error:
            raise UnansweredError(f"the judge's endpoint did not answer within {self._seconds:g} s") from error

    def _unreached(self, error: openai.APIConnectionError) -> TemporaryError:
        cause = error.__cause__
        why = self._key.hidden_in(str(cause or error))[:_LONGEST]
        if type(cause).__name__ in _BEFORE_THE_CALL:
            return TemporaryError(f"the judge's endpoint cannot be reached: {why or 'no connection in time'}")
        if isinstance(error, openai.APITimeoutError):
            return UnansweredError(f"the judge's endpoint did not answer within {self._seconds:g} s")
        return UnansweredError(f"the judge's endpoint broke off: {why}")

    def _meaning(self, error: openai.APIStatusError) -> Exception:
        status, said = _CODES.get(error.code or "", error.status_code), self._key.hidden_in(error.message)[:_LONGEST]
        if status in _FOR_A_PERSON or _is_for_a_person(error) or 300 <= status < 400:  # noqa: PLR2004
            return ConfigurationError(_advice(status, self._settings, self._key.where) + f" It said: {said}")
        if status in _TEMPORARY or status >= 500:  # noqa: PLR2004
            return TemporaryError(f"the judge's endpoint is busy or broken: {said}", retry_after(error.response.headers))
        return PermanentError(f"the judge's endpoint refuses this request: {said}")


_BEFORE_THE_CALL: Final = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})
"""How the client's own client names failures after which nothing can have been answered; its library is not ours to import."""
_LONGEST: Final = 500
"""Characters that are kept of what an endpoint said of an error."""


def _is_for_a_person(error: openai.APIStatusError) -> bool:
    return error.code in _CODES or error.code in _OUT_OF_MONEY or error.type in _OUT_OF_MONEY


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds ``Retry-After`` asks to wait, as a number or as a date, or None where it says nothing usable.

    A date is read against the ``Date`` of the same reply, so no clock of ours takes part.
    """
    written = headers.get("retry-after", "").strip()
    try:
        seconds = float(written)
    except ValueError:
        return _until(written, headers.get("date", ""))
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _until(then: str, now: str) -> float | None:
    try:
        return max(0.0, (parsedate_to_datetime(then) - parsedate_to_datetime(now)).total_seconds())
    except (ValueError, TypeError):
        return None


def _advice(status: int, settings: JudgeSettings, key: str) -> str:
    match status:
        case 401 | 403:
            return f"the judge's endpoint refuses the key: put a key that may use {settings.model} into {key}."
        case 404:
            named = "judge.model" if settings.at == "judge" else settings.at
            known = f"the judge's endpoint knows no {settings.model} at {settings.base_url}"
            return f"{known}: correct {named} or {settings.at}.base_url."
        case 402 | 429:
            return f"the judge's account is out of money: raise its limit or change {settings.at}.base_url."
        case _:
            address = f"the address that it really has as {settings.at}.base_url, not {settings.base_url}"
            return f"the judge's endpoint redirects: write {address}."
