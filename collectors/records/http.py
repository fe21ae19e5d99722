"""A service that answers a GET with JSON. The URL is the configured one with a key in it; nothing else is ever asked."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from collectors.records.addresses import AllowedAddresses, allowed
from collectors.records.ask import LARGEST, Ask
from pipeline.config.records import IN_URL, HttpSource
from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.scorers.json_values import parsed

_PASSING_TROUBLE: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
_HEADERS: Final = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "tracegrade"}


@asynccontextmanager
async def http_source(settings: HttpSource, resolver: AbstractResolver | None = None) -> AsyncIterator[Ask]:
    """Yield how the service is asked.

    Raises:
        ConfigurationError: the URL's host is an address that is not allowed, or a header's file cannot be read.
    """
    host = urlsplit(settings.url).hostname or ""
    if _is_address(host) and not allowed(host, settings.networks):
        raise ConfigurationError(f"{host} is not a public address; write the network that it is in under networks")
    connector = aiohttp.TCPConnector(resolver=AllowedAddresses(settings.networks, resolver), use_dns_cache=False)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, requote_redirect_url=False
    ) as session:
        service = _Service(settings, session)
        service.headers()
        yield service.ask


class _Service:
    def __init__(self, settings: HttpSource, session: aiohttp.ClientSession) -> None:
        self._settings = settings
        self._session = session

    def headers(self) -> dict[str, str]:
        """Return what is sent with a request; files are read anew, so that a secret can be replaced while we run.

        Raises:
            ConfigurationError: one of the files cannot be read.
        """
        headers = _HEADERS | {name: value.get_secret_value() for name, value in self._settings.headers.items()}
        for name, path in self._settings.header_files.items():
            try:
                headers[name] = path.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigurationError(f"header_files.{name} cannot be read ({type(error).__name__}); name a file") from None
        return headers

    async def ask(self, key: Mapping[str, Any]) -> Any:
        """Return what the service has under a key; None where it says that it has nothing.

        Raises:
            TemporaryError: no connection, no whole answer, 408, 425, 429 or 5xx.
            PermanentError: any other answer. Redirects are not followed: a URL was allowed, not what it points to.
        """
        url = url_of(self._settings.url, key)
        try:
            async with self._session.get(url, headers=self.headers(), allow_redirects=False) as response:
                return await self._read(response)
        except ConfigurationError as error:
            raise TemporaryError(str(error)) from None
        except (aiohttp.ClientError, OSError) as error:
            # What aiohttp says of itself can hold the URL. A timeout of the caller's is none of these.
            raise TemporaryError(f"no answer ({type(error).__name__})") from None

    async def _read(self, response: aiohttp.ClientResponse) -> Any:
        status = response.status
        if status in self._settings.absent:
            return None
        if status in _PASSING_TROUBLE or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise TemporaryError(f"status {status}", _retry_after(response.headers))
        if status != HTTPStatus.OK:
            moved = HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST
            raise PermanentError(f"status {status}{'; redirects are not followed' if moved else ''}")
        body = bytearray()
        async for chunk in response.content.iter_chunked(LARGEST):
            body += chunk
            if len(body) > LARGEST:
                raise PermanentError(f"the answer has more than {LARGEST} bytes")
        try:
            return parsed(body.decode())
        except ValueError:
            raise PermanentError("the answer is not JSON") from None


def url_of(template: str, key: Mapping[str, Any]) -> URL:
    """Return the URL with a key in it. No value is anything but one part of its path, or one value of its query.

    Raises:
        PermanentError: a value cannot stand in a URL as itself.
    """
    written = IN_URL.sub(lambda found: _quoted(key[found[1]]), template)
    return URL(written, encoded=True)


def _quoted(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else f"{value:f}" if isinstance(value, Decimal) else str(value)
    if text in (".", ".."):
        raise PermanentError("the key is a step in a path, and no name")
    return quote(text, safe="")


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdecimal()


def _retry_after(headers: Mapping[str, str]) -> float | None:
    text = headers.get("Retry-After", "").strip()
    return float(text) if text.isdecimal() and text.isascii() else None
