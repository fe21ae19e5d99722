"""Record sources: where checks may read what an agent's calls came to (spec section 3). What is not written here is never read."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, IPvAnyNetwork, SecretStr, model_validator

from pipeline.errors import ConfigurationError
from pipeline.model.settings import Duration, Settings
from pipeline.model.time import MINUTE, SECOND
from pipeline.scorers.installed import loaded, provenance, validated
from pipeline.scorers.reading import Source
from pipeline.scorers.source_plug_in import RECORDS, SourcePlugIn

IN_URL: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A parameter in a URL."""
IN_QUERY: Final = re.compile(r"(?<![:\w\\]):(\w+)(?!:)")
"""A parameter in a query, as SQLAlchemy reads it."""
LONGEST_DEADLINE: Final = MINUTE
"""Windows are final a minute after the last run of theirs can have closed, and a run is not graded before its reads are answered."""
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _template(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("this is no URL; write it whole, such as https://payments.example.com/refunds?order={order}")
    if parts.username or parts.password:
        raise ValueError("there is a user or password in the URL; write headers: {Authorization: ...} with a ${VARIABLE}")
    if IN_URL.search(parts.netloc) or parts.fragment or "{" in IN_URL.sub("", url):
        raise ValueError("parameters stand in the path and in the query, each as {name}; the host is always the same")
    return url


def _one_query(query: str) -> str:
    bare = query.strip().removesuffix(";").rstrip()
    if not re.match(r"(?i)(select|with)\b", bare) or ";" in bare:
        raise ValueError("a source only reads: write one statement that begins with SELECT or WITH, with parameters as :name")
    return bare


class HttpSource(Settings):
    """A service that answers a GET with JSON."""

    model_config = ConfigDict(hide_input_in_errors=True)

    url: Annotated[str, AfterValidator(_template)]
    """The URL, with parameters as ``{name}`` in its path or its query. Nothing else is ever asked; redirects are not followed."""
    headers: dict[str, SecretStr] = Field(default={})
    """Sent with each request, such as an Authorization; shown nowhere."""
    header_files: dict[str, Path] = Field(default={})
    """Headers whose values stand in files, which are read for each request."""
    absent: tuple[Annotated[int, Field(ge=400, le=499)], ...] = (404,)
    """Status codes that say that there is no such record. Any other but 200 is a read that failed."""
    networks: tuple[Annotated[IPv4Network | IPv6Network, IPvAnyNetwork], ...] = ()
    """Networks that are not public and that the host may have its address in, such as 10.0.0.0/8. Without one only public addresses are asked."""

    @model_validator(mode="after")
    def _are_headers(self) -> Self:
        for name in (*self.headers, *self.header_files):
            if not _HEADER.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a header")
        if any(not value.get_secret_value().isprintable() for value in self.headers.values()):
            raise ValueError("a header's value is one line")
        return self


class SqlSource(Settings):
    """A database, through SQLAlchemy."""

    model_config = ConfigDict(hide_input_in_errors=True)

    url: SecretStr | None = None
    """The database as SQLAlchemy names it, such as ``postgresql+psycopg://reader@ledger/main``; shown nowhere."""
    url_file: Path | None = None
    """A file that holds the URL, instead."""
    query: Annotated[str, AfterValidator(_one_query)]
    """One statement that reads, with parameters as ``:name``; they are bound, never written into it. Each row is a record."""

    @model_validator(mode="after")
    def _is_one_place(self) -> Self:
        if (self.url is None) == (self.url_file is None):
            raise ValueError("write exactly one of url and url_file")
        return self


class PythonSource(Settings):
    """A source that an installed package brings."""

    use: str = Field(min_length=1, max_length=200)
    """What the package calls it."""
    settings: dict[str, Any] = Field(default={})
    """What it is set to; the source itself says what can be set."""


class RecordSourceSettings(Settings):
    """A source. Exactly one of ``http``, ``sql`` and ``python`` says what it is."""

    http: HttpSource | None = None
    """A service that answers a GET with JSON."""
    sql: SqlSource | None = None
    """A database."""
    python: PythonSource | None = None
    """What an installed package brings."""
    timeout: Annotated[Duration, Field(gt=0)] = 5 * SECOND
    """Of one attempt."""
    deadline: Annotated[Duration, Field(gt=0, le=LONGEST_DEADLINE)] = 20 * SECOND
    """From the first attempt; what could not be read by then was not read. A minute at most."""
    concurrency: Annotated[int, Field(ge=1, le=100)] = 4
    """Reads at the same time."""

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        if sum(one is not None for one in (self.http, self.sql, self.python)) != 1:
            raise ValueError("write exactly one of http, sql, python")
        return self


def source_of(name: str, settings: RecordSourceSettings) -> Source:
    """Return a source as checks know it. What is secret, and how long is waited, is no part of its terms.

    Raises:
        ConfigurationError: a plug-in cannot be had as it is written.
    """
    if settings.http is not None:
        http = settings.http
        terms: dict[str, Any] = {"kind": "http", "url": http.url, "absent": list(http.absent)}
        return Source(name, terms, frozenset(IN_URL.findall(http.url)))
    if settings.sql is not None:
        query = settings.sql.query
        return Source(name, {"kind": "sql", "query": query}, frozenset(IN_QUERY.findall(query)))
    return _plugged_in(name, settings.python or PythonSource(use=name))


def _plugged_in(name: str, settings: PythonSource) -> Source:
    plug_in, entry = loaded(RECORDS, settings.use, SourcePlugIn)
    given = validated(plug_in, settings.settings, name)
    terms = {
        "kind": "python",
        "plug_in": plug_in.name,
        **provenance(entry),
        "settings": given.model_dump(mode="json", by_alias=True),
    }
    return Source(name, terms, frozenset(plug_in.parameters))


def sources_of(records: Mapping[str, RecordSourceSettings]) -> dict[str, Source]:
    """Return the sources by name.

    Raises:
        ConfigurationError: a plug-in cannot be had as it is written.
    """
    found: dict[str, Source] = {}
    for name, settings in records.items():
        try:
            found[name] = source_of(name, settings)
        except ConfigurationError as error:
            raise ConfigurationError(f"records.{name}: {error}") from error
    return found
