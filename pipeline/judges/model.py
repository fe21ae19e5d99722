"""The seam to whoever serves the judge's model."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from pipeline.model.step import Message


class Reply(msgspec.Struct, frozen=True):
    """What a model answered, raw. Token counts are None where the endpoint gave none."""

    text: str
    served_model: str = ""
    fingerprint: str = ""
    """The endpoint's name for the configuration that answered; it may change under one model id."""
    input_tokens: int | None = None
    output_tokens: int | None = None


class JudgeModel(Protocol):
    """A model that answers chat messages; safe to ask concurrently."""

    async def ask(self, messages: Sequence[Message], *, seed: int | None, temperature: float) -> Reply:
        """Ask once.

        Raises:
            TemporaryError: it may answer later: rate limit, outage, timeout. ``retry_after`` is what the endpoint said.
            PermanentError: it will never answer these messages.
            ConfigurationError: it answers nobody until a person acts: key, billing, address, unknown model.
        """
        ...
