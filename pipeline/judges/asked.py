"""Asked: what a caller has to know of a question, whether it is about one run or about two."""

from typing import Any, Protocol, TypeVar

from pipeline.judges.votes import VoteKey
from pipeline.model.contract import Contract
from pipeline.model.step import Message


class Graded(Protocol):
    """What a reply comes to, as the row of its call tells it."""

    @property
    def outcome(self) -> str:
        """In one word of a closed list."""
        ...

    @property
    def score(self) -> float | None:
        """Of a reply that is a number."""
        ...

    @property
    def reason(self) -> str:
        """In one sentence."""
        ...


G = TypeVar("G", bound=Graded)
"""What the replies to one kind of question come to."""
G_co = TypeVar("G_co", bound=Graded, covariant=True)


class Asked(Protocol[G_co]):
    """A question. Pure: the same replies always come to the same grades."""

    @property
    def contract(self) -> Contract:
        """What it is asked under."""
        ...

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a reply."""
        ...

    def messages(self, nonce: str) -> list[Message]:
        """Return the prompt of one call."""
        ...

    def key(self, vote: int, attempt: int) -> VoteKey:
        """Name one of its calls."""
        ...

    def unparsed(self, raw: str) -> bool:
        """Whether a reply holds no verdict that can be read, so that it may be asked for once more."""
        ...

    def grade(self, raw: str) -> G_co:
        """Return what a raw reply comes to."""
        ...

    def broken(self, reason: str) -> G_co:
        """Return what a call without a verdict comes to."""
        ...
