"""Installed: what packages bring under an entry-point group. Only what a configuration uses is loaded, and it is refused with a sentence."""

import sys
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
from pydantic import ValidationError

from pipeline.errors import ConfigurationError
from pipeline.model.settings import Settings


class Declared(Protocol):
    """What every plug-in says of itself."""

    @property
    def name(self) -> str:
        """As the entry point is called."""
        ...

    @property
    def settings(self) -> type[Settings]:
        """What can be set."""
        ...


P = TypeVar("P", bound=Declared)


class Group(msgspec.Struct, frozen=True):
    """An entry-point group, what one of its plug-ins is called, and the function that each must have."""

    name: str
    noun: str
    function: str


def loaded(group: Group, name: str, kind: type[P], found: Iterable[EntryPoint] | None = None) -> tuple[P, EntryPoint]:
    """Return the plug-in of a name, and the entry point behind it.

    Raises:
        ConfigurationError: none is installed, or two are; it cannot be loaded, or is not what it should be.
    """
    entry = _entry(group, name, list(entry_points(group=group.name) if found is None else found))
    named = _named(group, entry)
    try:
        plug_in = entry.load()
    except (Exception, SystemExit) as error:  # whatever somebody's module raises when it is imported
        raise ConfigurationError(
            f"{named} cannot be loaded ({type(error).__name__}: {error}); mend the package, or do not use it"
        ) from error
    if not isinstance(plug_in, kind):
        raise ConfigurationError(
            f"{named} is a {type(plug_in).__name__} and no {kind.__name__}; name the module's {kind.__name__}"
        )
    if plug_in.name != entry.name:
        raise ConfigurationError(f"{named} calls itself {plug_in.name!r}; give the entry point the same name")
    if not callable(getattr(plug_in, group.function.partition("(")[0])):
        raise ConfigurationError(f"{named} has no function {group.function.partition('(')[0]}; write def {group.function}")
    if not isinstance(plug_in.settings, type) or not issubclass(plug_in.settings, Settings):
        raise ConfigurationError(f"{named} has settings that are no class of pipeline.model.settings.Settings; derive one")
    return plug_in, entry


def validated(plug_in: Declared, written: Mapping[str, Any], whose: str) -> Settings:
    """Return what is written as the plug-in's settings.

    Raises:
        ConfigurationError: it does not take them. What was written is not repeated: it may be a secret.
    """
    try:
        return plug_in.settings.model_validate(dict(written))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(["settings", *map(str, first["loc"])])
        known = ", ".join(plug_in.settings.model_fields) or "nothing"
        raise ConfigurationError(f"{whose}: {where}: {first['msg']}; {plug_in.name} can be set by: {known}") from None


def provenance(entry: EntryPoint) -> dict[str, str]:
    """Return what a plug-in is made of, for contracts: its package with the version, and a hash of its source."""
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
    return {"package": package, "source": source_hash(entry.module)}


def source_hash(module: str) -> str:
    """Name what a plug-in's code says, 16 hex digits: its module, or every module of the topmost package that it is in.

    A comment that changes changes it too: nobody else can tell a comment from a rule.
    """
    hashed = blake2b(digest_size=8)
    for name, path in _sources(module):
        text = path.read_bytes()
        hashed.update(f"{name} {len(text)}\n".encode() + text)
    return hashed.hexdigest()


def _sources(module: str) -> list[tuple[str, Path]]:
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        found = sys.modules.get(".".join(parts[:end]))
        path = Path(found.__file__) if found is not None and found.__file__ else None
        if path is None:  # a namespace that packages share is nobody's source
            continue
        if path.name == "__init__.py":
            return [(one.relative_to(path.parent).as_posix(), one) for one in sorted(path.parent.rglob("*.py"))]
        return [(path.name, path)]
    return []


def _entry(group: Group, name: str, installed: list[EntryPoint]) -> EntryPoint:
    named = sorted((one for one in installed if one.name == name), key=lambda one: one.value)
    if not named:
        known = ", ".join(sorted({one.name for one in installed})) or "none"
        raise ConfigurationError(f"no installed package brings a {group.noun} {name!r}; those that are installed: {known}")
    if len(named) > 1:
        told = " and ".join(_named(group, one) for one in named)
        raise ConfigurationError(f"{told} have one name; uninstall one of the packages")
    return named[0]


def _named(group: Group, entry: EntryPoint) -> str:
    package = f" of {entry.dist.name}" if entry.dist is not None else ""
    return f"the {group.noun} {entry.name} = {entry.value}{package}"
