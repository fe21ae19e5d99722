"""Outside: the files and the folder that a configuration names, looked at before something that needs them is started."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from pipeline.config.consistency import Finding
from pipeline.config.keys import fields
from pipeline.config.mistake import Location
from pipeline.config.tracegrade import TracegradeSettings

_FOLDER: Final[Location] = ("store", "path")
"""The one path that is a folder; it is made where there is none."""


def unusable_paths(settings: TracegradeSettings) -> Iterator[Finding]:
    """Yield the paths behind which is not what the setting is for, as this user finds them on this machine."""
    for at, path in _paths(settings):
        if at == _FOLDER and settings.store.url is None:
            if what := _no_folder(path):
                yield at, what
        elif at != _FOLDER and (what := _no_file(path)):
            yield at, what


def _no_folder(path: Path) -> str:
    if path.exists():
        return "" if path.is_dir() else f"{path} is a file; write the path of a folder, which is made where there is none"
    made_in = next(one for one in path.absolute().parents if one.exists())
    if made_in.is_dir() and os.access(made_in, os.W_OK | os.X_OK):
        return ""
    return f"{path} cannot be made in {made_in}; write a folder that you may write in"


def _no_file(path: Path) -> str:
    if not path.exists():
        return f"{path} does not exist; write the path of a file"
    if path.is_dir():
        return f"{path} is a folder; write the path of a file"
    return "" if os.access(path, os.R_OK) else f"{path} cannot be read by this user; let it be read, or write another file"


def _paths(value: Any, at: Location = ()) -> Iterator[tuple[Location, Path]]:
    """Yield each path and where it stands, of defaults too."""
    if isinstance(value, Path):
        yield at, value
        return
    parts: Mapping[Any, Any] = {}
    if isinstance(value, BaseModel):
        parts = {
            written: getattr(value, name) for name, written in zip(type(value).model_fields, fields(type(value)), strict=True)
        }
    elif isinstance(value, Mapping):
        parts = value
    elif isinstance(value, list | tuple):
        parts = dict(enumerate(value))
    for key, part in parts.items():
        yield from _paths(part, (*at, key))
