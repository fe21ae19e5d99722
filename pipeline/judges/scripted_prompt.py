"""What the scripted judge reads of a prompt: the dimension and the fenced sections, told apart as a careful reader would."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Self

import msgspec

from pipeline.judges.fence import begin, end
from pipeline.judges.prompt import NOTHING

_DIMENSION: Final = re.compile(r"on one dimension: ([a-z0-9_-]+)\.")
_CRITERION: Final = re.compile(r"against one criterion: ([a-z0-9_-]+)\.")
_NONCE: Final = re.compile(r"=== BEGIN DATA (\S+)")
_SCALE: Final = re.compile(r"^The scale for [a-z0-9_-]+, (-?\d+) to (-?\d+):$", re.MULTILINE)
_ENTRY: Final = re.compile(r"^\[\d+\] ", re.MULTILINE)
_FIELD: Final = re.compile(r"^(?:    )?(tool|arguments|result|error): ", re.MULTILINE)


class SeenCall(msgspec.Struct, frozen=True):
    """A call as the prompt shows it; None where a part is not shown."""

    tool: str = ""
    arguments: str | None = None
    result: str | None = None
    error: str | None = None


class SeenPrompt(msgspec.Struct, frozen=True):
    """A pointwise prompt, read back. Sections that held nothing are empty. A criterion's scale is 0 to 1."""

    dimension: str
    """Or the criterion."""
    lowest: int
    highest: int
    request: str
    instructions: str
    observations: tuple[SeenCall, ...]
    reply: str
    passed_or_failed: bool = False
    """Whether the prompt asks for PASS or FAIL."""

    @classmethod
    def of(cls, messages: Sequence[Mapping[str, object]]) -> Self | None:
        """Read the messages of a chat request; None where they are no pointwise prompt."""
        texts = [str(message.get("content", "")) for message in messages]
        if len(texts) != 2:  # noqa: PLR2004
            return None
        rules, data = texts
        dimension, nonce, scale = _DIMENSION.search(rules), _NONCE.search(rules), _SCALE.search(data)
        criterion = _CRITERION.search(rules)
        if nonce is None or (criterion is None and (dimension is None or scale is None)):
            return None
        sections = {name: section(data, name, nonce[1]) for name in ("request", "instructions", "observations", "reply")}
        return cls(
            dimension=criterion[1] if criterion else dimension[1] if dimension else "",
            lowest=0 if criterion or not scale else int(scale[1]),
            highest=1 if criterion or not scale else int(scale[2]),
            passed_or_failed=criterion is not None,
            request=sections["request"],
            instructions=sections["instructions"],
            observations=tuple(calls_of(sections["observations"])),
            reply=sections["reply"],
        )


def section(data: str, name: str, nonce: str) -> str:
    """Return what stands in a fenced section; empty where there is none or it holds nothing."""
    _, opened, after = data.partition(f"{begin(name, nonce)}\n")
    inside, closed, _ = after.partition(f"\n{end(name, nonce)}")
    return inside if opened and closed and inside != NOTHING else ""


def calls_of(text: str) -> Iterable[SeenCall]:
    """Yield the calls that a section of observations shows."""
    for entry in _ENTRY.split(text)[1:]:
        parts = _FIELD.split(entry)
        said = {name: value.removesuffix("\n") for name, value in zip(parts[1::2], parts[2::2], strict=True)}
        if "tool" in said:
            yield SeenCall(said["tool"], *(_shown(said.get(name)) for name in ("arguments", "result", "error")))


def _shown(text: str | None) -> str | None:
    return None if text in (None, NOTHING) else text
