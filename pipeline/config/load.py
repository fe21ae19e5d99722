"""Load: ``tracegrade.yaml`` in, settings out, or every mistake by line."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from pydantic import ValidationError

from pipeline.config.consistency import contradictions, told
from pipeline.config.doubts import doubts
from pipeline.config.explain import explain, overlooked
from pipeline.config.mistake import Mistake
from pipeline.config.outside import unusable_paths
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.config.yaml_file import YamlFile
from pipeline.errors import ConfigurationError
from pipeline.model.settings import Settings

FILE_NAME: Final = "tracegrade.yaml"
"""What is read from the working directory where no file is named."""

T = TypeVar("T")


class Loaded(msgspec.Struct, frozen=True):
    """A configuration file as it was read. ``settings`` is None where it holds mistakes."""

    name: str
    """The file as it is named in messages."""
    settings: TracegradeSettings | None
    mistakes: tuple[Mistake, ...] = ()
    warnings: tuple[Mistake, ...] = ()
    outside: tuple[Mistake, ...] = ()
    """What the settings name and is not there on this machine. A process that needs none of it can run all the same."""


def load(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> TracegradeSettings:
    """Return the settings in a file; without a path, those in ``./tracegrade.yaml``, or the defaults where there is none.

    Raises:
        ConfigurationError: with every mistake, a line for each, and what to write instead.
    """
    loaded = read(path, environment)
    if loaded.settings is None:
        raise ConfigurationError("\n".join(one.at(loaded.name) for one in loaded.mistakes))
    return loaded.settings


def read(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> Loaded:
    """Read a file as :func:`load` does; mistakes and warnings are returned, not raised.

    What stands in a file relative to something is relative to the file's folder.
    """
    named = Path(FILE_NAME) if path is None else path
    if path is None and not named.exists():
        return _settled(TracegradeSettings(), YamlFile("", environment), "the defaults", environment)
    try:
        text = _text(named)
    except ConfigurationError as error:
        return Loaded(str(named), None, (Mistake(0, "", str(error)),))
    file = YamlFile(text, environment)
    if file.unreadable:
        return Loaded(str(named), None, tuple(file.mistakes))
    mistakes = [*file.mistakes, *overlooked(TracegradeSettings, file)]
    try:
        settings = TracegradeSettings.model_validate({} if file.data is None else file.data)
    except ValidationError as error:
        told = {(one.line, one.where) for one in mistakes}
        mistakes += [one for one in explain(error, TracegradeSettings, file) if (one.line, one.where) not in told]
    if mistakes:
        return Loaded(str(named), None, tuple(sorted(mistakes)))
    return _settled(_beside(settings, named.parent), file, str(named), environment)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigurationError("is not UTF-8 text; save it as UTF-8") from None
    except IsADirectoryError:
        raise ConfigurationError(f"is a folder; name the file in it, or write nothing to use ./{FILE_NAME}") from None
    except OSError as error:
        what = f"cannot be read ({error.strerror or error}); name the file, or write nothing to use ./{FILE_NAME}"
        raise ConfigurationError(what) from None


def _settled(settings: TracegradeSettings, file: YamlFile, name: str, environment: Mapping[str, str]) -> Loaded:
    mistakes = tuple(contradictions(settings, file))
    warnings = () if mistakes else tuple(doubts(settings, file, environment))
    outside = () if mistakes else tuple(told(file, unusable_paths(settings)))
    return Loaded(name, None if mistakes else settings, mistakes, warnings, outside)


def _beside(value: T, folder: Path) -> T:
    """Return a written value with its relative paths made relative to the folder; defaults stay relative to the working directory."""
    changed: Any = value
    if isinstance(value, Settings):
        written = {name: getattr(value, name) for name in value.model_fields_set}
        changed = value.model_copy(update={name: _beside(part, folder) for name, part in written.items()})
    elif isinstance(value, Path):
        changed = folder / value
    elif isinstance(value, dict):
        changed = {name: _beside(part, folder) for name, part in value.items()}
    elif isinstance(value, tuple):
        changed = tuple(_beside(part, folder) for part in value)
    result: T = changed
    return result
