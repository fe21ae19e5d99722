"""Names and values in OTLP that nobody can parse: the value under ``password`` is a secret also in a message that is cut off."""

import re
from collections.abc import Iterator
from typing import Final

from collectors.redaction.names import names_a_secret
from pipeline.patterns import Region

_VARINT: Final = rb"([\x80-\xff]{0,4}[\x00-\x7f])"
_IN_PROTOBUF: Final = re.compile(rb"\n([\x01-\x7f])([ -~]{1,127})\x12" + _VARINT + rb"\n" + _VARINT)
"""An attribute up to where its text begins: 1 is the key, 2 the value, of which 1 is text."""
_IN_JSON: Final = re.compile(
    rb'"key"\s{0,9}:\s{0,9}"([^"\\]{1,127})"\s{0,9},\s{0,9}"value"\s{0,9}:\s{0,9}\{\s{0,9}"(?:string|bytes)Value"\s{0,9}:\s{0,9}"((?:[^"\\]|\\.)*+)',
    re.DOTALL,
)


def named_in(raw: bytes) -> Iterator[Region]:
    """Yield where the text is of each attribute whose name tells of a secret, in either encoding."""
    for match in _IN_PROTOBUF.finditer(raw):
        if match[1][0] == len(match[2]) and names_a_secret(match[2].decode()):
            yield match.end(), min(match.end() + _number(match[4]), len(raw))
    for match in _IN_JSON.finditer(raw):
        if names_a_secret(match[1].decode(errors="replace")):
            yield match.span(2)


def _number(varint: bytes) -> int:
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(varint))
