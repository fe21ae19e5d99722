"""Completion: the body that an OpenAI-compatible endpoint answered with, as a reply."""

from codecs import BOM_UTF8
from typing import Final

import msgspec

from pipeline.judges import reply
from pipeline.judges.model import Reply

LONGEST: Final = reply.LONGEST + 1
"""What is kept of a reply: enough to see that it is too long."""
REFUSAL: Final = "refusal"
"""Why a reply ended where the model answered in the field that is for refusing."""


class _Said(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Said
    finish_reason: str | None = None


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
        completion = msgspec.json.decode(body.removeprefix(BOM_UTF8), type=_Completion)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Reply(text=body[:LONGEST].decode("utf-8", "replace"))
    choice = completion.choices[0] if completion.choices else _Choice(_Said())
    said, usage = choice.message, completion.usage or _Usage()
    refused = not said.content and bool(said.refusal)
    return Reply(
        text=(said.content or said.refusal or "")[:LONGEST],
        finish_reason=REFUSAL if refused else choice.finish_reason or "",
        served_model=completion.model or "",
        fingerprint=completion.system_fingerprint or "",
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
    )
