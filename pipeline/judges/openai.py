"""The judge's model behind any OpenAI-compatible endpoint; the only place that imports ``openai``."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Final, Self, TypeAlias

import msgspec
import openai

from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.judges import reply
from pipeline.judges.model import Reply
from pipeline.judges.settings import JudgeSettings
from pipeline.model.rubric import Rubric
from pipeline.model.step import Message
from pipeline.model.time import SECOND

_TEMPORARY: Final = frozenset({408, 409, 425, 429})
_FOR_A_PERSON: Final = frozenset({401, 402, 403, 404})
_FORM_REFUSED: Final = frozenset({400, 415, 422, 500, 501})
"""How endpoints answer a ``response_format`` that they do not know; some fall over it."""
_Form: TypeAlias = Mapping[str, Any]
"""How the form of the reply is asked for; nothing where it is asked for in words only."""
_OUT_OF_MONEY: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})

_LONGEST: Final = reply.LONGEST + 1
"""What is kept of a reply: enough to see that it is too long."""


class OpenAIModel:
    """Asks one model at one endpoint. It never retries by itself: who waits, and until when, is the runtime's to say.

    The reply's form is asked for as JSON Schema, else as a JSON object, else only in words: the first that the endpoint
    takes is remembered.
    """

    def __init__(self, settings: JudgeSettings, rubric: Rubric, environ: Mapping[str, str]) -> None:
        if settings.base_url is None:
            raise ConfigurationError("no judge is configured: write its endpoint as judge.base_url")
        self._settings = settings
        self._key = environ.get(settings.api_key_env, "")
        self._seconds = settings.timeout / SECOND
        self._forms = _forms(rubric)
        self._client = openai.AsyncOpenAI(
            base_url=settings.base_url,
            # The client insists on a key; an endpoint that wants one will refuse this.
            api_key=self._key or "none",
            max_retries=0,
            timeout=self._seconds,
            # A redirect would carry transcripts to a host that nobody configured.
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
        )

    async def __aenter__(self) -> Self:
        """Nothing is opened before the first question."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self._client.close()

    async def ask(self, messages: Sequence[Message], *, seed: int | None, temperature: float) -> Reply:
        """Ask once, or once for each form of reply until the endpoint takes one (:class:`pipeline.judges.model.JudgeModel`)."""
        chat = [{"role": message.role, "content": message.text} for message in messages]
        *milder, last = self._forms
        for form in milder:
            try:
                return self._taken(form, await self._create(chat, seed, temperature, form))
            except openai.APIStatusError as error:
                if error.status_code not in _FORM_REFUSED:
                    raise self._meaning(error) from error
        try:
            return self._taken(last, await self._create(chat, seed, temperature, last))
        except openai.APIStatusError as error:
            raise self._meaning(error) from error

    def _taken(self, form: _Form, body: bytes) -> Reply:
        # Only success says something about a form: an outage refuses all of them.
        self._forms = (form,)
        return read(body)

    async def _create(self, chat: list[dict[str, str]], seed: int | None, temperature: float, form: _Form) -> bytes:
        asked: dict[str, Any] = {"model": self._settings.model, "messages": chat, "temperature": temperature, **form}
        if seed is not None:
            asked["seed"] = seed
        try:
            # The client's timeout is for each read; an endpoint that sends a byte a second would never meet it.
            async with asyncio.timeout(self._seconds):
                return bytes((await self._client.chat.completions.with_raw_response.create(**asked)).content)
        except (TimeoutError, openai.APITimeoutError) as error:
            raise TemporaryError(f"the judge's endpoint did not answer within {self._seconds:g} s") from error
        except openai.APIConnectionError as error:
            raise TemporaryError(
                f"the judge's endpoint cannot be reached: {self._without_key(str(error.__cause__ or error))}"
            ) from error

    def _meaning(self, error: openai.APIStatusError) -> Exception:
        status, said = error.status_code, self._without_key(error.message)
        if status in _FOR_A_PERSON or error.code in _OUT_OF_MONEY or error.type in _OUT_OF_MONEY or 300 <= status < 400:  # noqa: PLR2004
            return ConfigurationError(_advice(status, self._settings) + f" It said: {said}")
        if status in _TEMPORARY or status >= 500:  # noqa: PLR2004
            return TemporaryError(f"the judge's endpoint is busy or broken: {said}", retry_after(error.response.headers))
        return PermanentError(f"the judge's endpoint refuses this request: {said}")

    def _without_key(self, text: str) -> str:
        # Endpoints have been seen to repeat the key they refuse.
        return (text.replace(self._key, "***") if self._key else text)[:500]


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


def _forms(rubric: Rubric) -> tuple[_Form, ...]:
    schema = {"name": "grade", "strict": True, "schema": reply.schema(rubric.scale_low, rubric.scale_high)}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}, {"response_format": {"type": "json_object"}}, {}


class _Said(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Said


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    system_fingerprint: str | None = None
    usage: _Usage | None = None


def read(body: bytes) -> Reply:
    """Read a completion. A body that is none, such as a proxy's HTML page, is a reply without a verdict, and its text is kept."""
    try:
        completion = msgspec.json.decode(body, type=_Completion)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Reply(text=body[:_LONGEST].decode("utf-8", "replace"))
    said = completion.choices[0].message if completion.choices else _Said()
    usage = completion.usage or _Usage()
    return Reply(
        text=(said.content or said.refusal or "")[:_LONGEST],
        served_model=completion.model or "",
        fingerprint=completion.system_fingerprint or "",
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
    )


def _advice(status: int, settings: JudgeSettings) -> str:
    match status:
        case 401 | 403:
            return f"the judge's endpoint refuses the key: set {settings.api_key_env} to a key that may use {settings.model}."
        case 404:
            return (
                f"the judge's endpoint knows no {settings.model} at {settings.base_url}: correct judge.model or judge.base_url."
            )
        case 402 | 429:
            return "the judge's account is out of money: raise its limit or change judge.base_url."
        case _:
            return f"the judge's endpoint redirects: write the address that it really has as judge.base_url, not {settings.base_url}."
