"""Dialects of others: a package names its own under the entry-point group ``tracegrade.dialects``, and they are there at the next start."""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from collectors.dialects import DIALECTS
from collectors.dialects.dialect import Dialect
from collectors.dialects.reader import Reader
from pipeline.errors import ConfigurationError

GROUP: Final = "tracegrade.dialects"


def installed() -> Reader:
    """Return a reader of the dialects that are built in and of those that are installed beside them.

    Raises:
        ConfigurationError: one of those cannot be loaded, is no dialect, or goes by a name that is taken.
    """
    found = sorted(entry_points(group=GROUP), key=lambda one: (one.name, one.value))
    return Reader((*plugged_in(found), *DIALECTS)) if found else Reader(DIALECTS)


def plugged_in(found: Iterable[EntryPoint]) -> tuple[Dialect, ...]:
    """Return the dialects behind these entry points. They come before what is built in, and so may read what that would have read."""
    taken = {dialect.name: "tracegrade itself" for dialect in DIALECTS}
    loaded: list[Dialect] = []
    for entry in found:
        dialect = _loaded(entry)
        if dialect.name in taken:
            raise ConfigurationError(
                f"{_named(entry)} is called {dialect.name!r}, as is one of {taken[dialect.name]}; rename one"
            )
        taken[dialect.name] = _named(entry)
        loaded.append(dialect)
    return tuple(loaded)


def _loaded(entry: EntryPoint) -> Dialect:
    try:
        dialect = entry.load()
    except Exception as error:  # whatever somebody's module raises when it is imported
        raise ConfigurationError(
            f"{_named(entry)} cannot be loaded ({type(error).__name__}: {error}); mend or remove it"
        ) from error
    if not isinstance(dialect, Dialect):
        raise ConfigurationError(f"{_named(entry)} is a {type(dialect).__name__} and no Dialect; name the module's DIALECT")
    if not (dialect.marks.scopes or dialect.marks.attributes):
        raise ConfigurationError(f"{_named(entry)} has no marks, so no span is ever in it; give it a scope or an attribute")
    return dialect


def _named(entry: EntryPoint) -> str:
    package = f" of {entry.dist.name}" if entry.dist is not None else ""
    return f"the dialect {entry.name} = {entry.value}{package}"
