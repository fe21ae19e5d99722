"""Files as JSON documents: one a line, or one that fills the file. A file of lines is never held whole."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import msgspec

from pipeline.errors import ConfigurationError

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


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
    if file.read(len(_BYTE_ORDER_MARK)) != _BYTE_ORDER_MARK:
        file.seek(0)
    start = file.tell()
    first = True
    for line, text in enumerate(file, start=1):
        if not text.strip():
            continue
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if not first:
                raise ConfigurationError(f"{path}, line {line} is not JSON: {error}") from error
            break
        first = False
        yield Document(value, line)
    else:
        return
    file.seek(start)
    yield _whole(path, file)


def _whole(path: Path, file: IO[bytes]) -> Document:
    try:
        return Document(msgspec.json.decode(file.read()), 1)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is neither JSON nor one JSON document a line: {error}") from error
