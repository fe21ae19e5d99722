"""Files as JSON documents: one a line, or one that fills the file. A file of lines is never held whole."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import msgspec

from pipeline.errors import ConfigurationError

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}
"""How files begin that no line can be read from; what they come to decompressed, nobody knows before."""
_PLACE: Final = re.compile(r"\(byte (\d+)\)")
_CUT: Final = "truncated"
"""What msgspec says of JSON that ends too early."""


class Document(NamedTuple):
    """A JSON value and the line that it starts on."""

    value: Any
    line: int


def documents(path: Path) -> Iterator[Document]:
    """Yield the documents of a file. A file whose first line is no document by itself is one document.

    Raises:
        ConfigurationError: the file cannot be read, or is no JSON.
    """
    try:
        with path.open("rb") as file:
            yield from _documents(path, file)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error


def _documents(path: Path, file: IO[bytes]) -> Iterator[Document]:
    head = file.read(4)
    _refuse_other_than_text(path, head)
    file.seek(len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0)
    start = file.tell()
    first = True
    for line, text in enumerate(file, start=1):
        if not text.strip():
            continue
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if not first:
                what = "is cut off" if _CUT in str(error) else "is not JSON"
                raise ConfigurationError(f"{path}, line {line} {what}: {error}") from error
            break
        first = False
        yield Document(value, line)
    else:
        return
    file.seek(start)
    yield _whole(path, file)


def _whole(path: Path, file: IO[bytes]) -> Document:
    text = file.read()
    try:
        return Document(msgspec.json.decode(text), 1)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = f"{path} is neither JSON nor one JSON document a line: {_where(text, error)}{error}"
        raise ConfigurationError(what) from error


def _where(text: bytes, error: Exception) -> str:
    """Return the line that msgspec complains of, as far as it says."""
    if _CUT in str(error):
        return f"line {_line(text, len(text.rstrip()))} is cut off: "
    try:
        text.decode()
    except UnicodeDecodeError as broken:
        return f"line {_line(text, broken.start)}: "
    found = _PLACE.search(str(error))
    return f"line {_line(text, int(found[1]))}: " if found is not None else ""


def _line(text: bytes, at: int) -> int:
    return text.count(b"\n", 0, at) + 1


def _refuse_other_than_text(path: Path, head: bytes) -> None:
    for magic, kind in _COMPRESSED.items():
        if head.startswith(magic):
            raise ConfigurationError(f"{path} is compressed ({kind}); decompress it first")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head:  # JSON has no NUL, and UTF-16 one beside each letter of it
        raise ConfigurationError(f"{path} is not UTF-8 but UTF-16 or binary; save it as UTF-8")
