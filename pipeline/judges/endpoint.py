"""Endpoint: one model as all who ask it in this process share it: its circuit, its limits a minute, and what it is waiting for."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.judges.circuit import PROBE_EVERY, Circuit
from pipeline.judges.model import ChatRequest, HeldBackError, JudgeModel, PausedError, Reply
from pipeline.judges.rate import Rate
from pipeline.judges.settings import JudgeSettings
from pipeline.model.time import SECOND

PATIENCE: Final = 30 * SECOND
"""How long a call waits for its turn in the place it has; whoever would wait longer gives it up and comes back."""

Changed = Callable[[Circuit, Circuit], None]
"""(before, after): told whenever a circuit opens, is paused or closes."""


def _nobody_is_told(before: Circuit, after: Circuit) -> None:
    """Stand where nobody wants to know."""


class Endpoint:
    """Lets calls through one by one, as fast as the endpoint and the settings allow."""

    def __init__(
        self,
        model: JudgeModel,
        settings: JudgeSettings,
        now: Callable[[], int],
        changed: Changed = _nobody_is_told,
    ) -> None:
        """Take the settings of this one model (:meth:`pipeline.judges.settings.JudgeSettings.of`)."""
        self._model = model
        self._now = now
        self._changed = changed
        self.settings = settings
        self.circuit = Circuit()
        self._requests = Rate(settings.requests_per_minute)
        self._tokens = Rate(settings.tokens_per_minute)

    def has_share(self, share: float) -> None:
        """Take only this part of what a minute allows, 0 to 1: the rest is other processes'."""
        requests, tokens = self.settings.requests_per_minute, self.settings.tokens_per_minute
        self._requests = msgspec.structs.replace(self._requests, per_minute=requests and requests * share)
        self._tokens = msgspec.structs.replace(self._tokens, per_minute=tokens and tokens * share)

    @asynccontextmanager
    async def admitted(self, request: ChatRequest) -> AsyncIterator[None]:
        """Wait for the turn of a call, which :meth:`ask` then makes inside of the block.

        Raises:
            HeldBackError: no call may be made now; ``retry_after`` says when one may. A PausedError where a person must act first.
        """
        await self._turn(request)
        self._free(self._now())
        alone = self.circuit.is_open
        self.circuit = self.circuit.begun()
        try:
            yield
        finally:
            if alone and self.circuit.probing:
                self.circuit = self.circuit.abandoned()

    async def _turn(self, request: ChatRequest) -> None:
        now = self._now()
        self._free(now)
        requests, first = self._requests.take(1, now)
        tokens, second = self._tokens.take(request.prompt_tokens + request.most_tokens, now)
        wait = max(first, second) - now
        if wait > PATIENCE:
            raise HeldBackError("the judge's calls of this minute are used up", wait / SECOND)
        self._requests, self._tokens = requests, tokens
        if wait:
            await asyncio.sleep(wait / SECOND)

    def _free(self, now: int) -> None:
        wait = (self.circuit.free_at(now) - now) / SECOND
        if wait > 0 and self.circuit.paused:
            raise PausedError(self.circuit.paused, wait)
        if wait > 0:
            raise HeldBackError("the judge's endpoint is left alone for a while: its last calls failed", wait)

    async def ask(self, request: ChatRequest) -> Reply:
        """Make a call that was admitted (:class:`pipeline.judges.model.JudgeModel`). What a person must mend pauses all calls.

        Raises:
            PausedError: in place of a ConfigurationError.
        """
        try:
            reply = await self._model.ask(request)
        except PermanentError:
            self._becomes(self.circuit.answered())
            raise
        except ConfigurationError as error:
            self._becomes(self.circuit.refused(self._now(), str(error)))
            raise PausedError(str(error), PROBE_EVERY / SECOND) from error
        except TemporaryError as error:
            self._becomes(self.circuit.failed(self._now(), self.settings.base_url or "", error.retry_after))
            raise
        self._becomes(self.circuit.answered())
        if reply.input_tokens is not None and reply.output_tokens is not None:
            taken = reply.input_tokens + reply.output_tokens
            self._tokens = self._tokens.corrected(taken - request.prompt_tokens - request.most_tokens)
        return reply

    def _becomes(self, after: Circuit) -> None:
        before, self.circuit = self.circuit, after
        if (before.is_open, before.paused) != (after.is_open, after.paused):
            self._changed(before, after)
