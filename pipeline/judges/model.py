"""The seam to whoever serves the judge's model."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from pipeline.errors import TemporaryError
from pipeline.model.step import Message

CUT: Final = "length"
"""Why a reply ended where it had used up its tokens."""


class ChatRequest(msgspec.Struct, frozen=True):
    """One call: what is asked, and how the answer is wished for. An endpoint may not take every wish."""

    messages: Sequence[Message]
    schema: Mapping[str, Any]
    """JSON Schema of the reply."""
    most_tokens: int
    """Of the reply, thinking included."""
    temperature: float = 0.0
    seed: int | None = None

    @property
    def prompt_tokens(self) -> int:
        """How many tokens the prompt may take: one for three bytes, which is more than English takes and about what Chinese does."""
        return sum(len(message.text.encode("utf-8", "replace")) for message in self.messages) // 3 + 1


class Reply(msgspec.Struct, frozen=True):
    """What a model answered, raw. Token counts are None where the endpoint gave none."""

    text: str
    finish_reason: str = ""
    """Why it ended, as the endpoint says: ``stop``, ``length`` where its tokens were used up, ``refusal``."""
    served_model: str = ""
    fingerprint: str = ""
    """The endpoint's name for the configuration that answered; it may change under one model id."""
    input_tokens: int | None = None
    output_tokens: int | None = None


class UnansweredError(TemporaryError):
    """The call was made and its answer never came: it may have been paid for."""


class JudgeModel(Protocol):
    """A model that answers chat messages; safe to ask concurrently."""

    async def ask(self, request: ChatRequest) -> Reply:
        """Ask once.

        Raises:
            TemporaryError: it may answer later: rate limit, outage, timeout. ``retry_after`` is what the endpoint said.
                An UnansweredError where it may have answered already.
            PermanentError: it will never answer these messages.
            ConfigurationError: it answers nobody until a person acts: key, billing, address, unknown model.
        """
        ...


class HeldBackError(TemporaryError):
    """No call was made, and none is before ``retry_after``: the endpoint is left alone, or a minute's calls are used up."""


class PausedError(HeldBackError):
    """Nothing is asked until a person has mended what the message says; then it goes on by itself."""
