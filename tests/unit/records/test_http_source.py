"""A service is asked under its own URL and nothing else is; what it answers badly was not read (reliability S7, S17)."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from socket import AF_INET
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.test_utils import TestServer
from pydantic import ValidationError

from collectors.records.addresses import AllowedAddresses, allowed
from collectors.records.ask import LARGEST, Ask
from collectors.records.http import http_source, url_of
from pipeline.config.records import HttpSource, source_of
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError, PermanentError, TemporaryError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LOOPBACK = ["127.0.0.0/8", "::1/128"]


@asynccontextmanager
async def a_service(handler: Handler, path: str = "/refunds/{order}", **settings: Any) -> AsyncIterator[Ask]:
    application = web.Application()
    application.router.add_get("/{tail:.*}", handler)
    async with TestServer(application) as server:
        written = {"url": f"http://127.0.0.1:{server.port}{path}", "networks": LOOPBACK} | settings
        async with http_source(HttpSource.model_validate(written)) as ask:
            yield ask


def saying(text: str = "{}", status: int = 200, headers: Mapping[str, str] | None = None) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(text=text, status=status, headers=headers)

    return handler


async def test_an_answer_is_read_with_exact_decimals() -> None:
    async with a_service(saying('{"amount": 12.10, "list": [1e2]}')) as ask:
        assert await ask({"order": "A-1"}) == {"amount": Decimal("12.10"), "list": [Decimal("1E+2")]}


@pytest.mark.parametrize("status", [404, 410])
async def test_that_there_is_no_such_record_is_an_answer_where_it_is_one(status: int) -> None:
    async with a_service(saying(status=status), absent=[404, 410]) as ask:
        assert await ask({"order": "A-1"}) is None
    async with a_service(saying(status=status), absent=[]) as ask:
        with pytest.raises(PermanentError, match=f"status {status}"):
            await ask({"order": "A-1"})


@pytest.mark.parametrize(
    ("handler", "error", "said"),
    [
        (saying(status=401), PermanentError, "status 401"),
        (saying(status=204), PermanentError, "status 204"),
        (saying(status=500), TemporaryError, "status 500"),
        (saying(status=429, headers={"Retry-After": "3"}), TemporaryError, "status 429"),
        (saying("<html>refunded</html>"), PermanentError, "the answer is not JSON"),
        (saying(""), PermanentError, "the answer is not JSON"),
        (saying('{"amount": NaN}'), PermanentError, "the answer is not JSON"),
        (saying("[" * 100_00), PermanentError, "the answer is not JSON"),
        (saying(f'"{"x" * LARGEST}"'), PermanentError, f"the answer has more than {LARGEST} bytes"),
    ],
)
async def test_anything_else_was_not_read(handler: Handler, error: type[Exception], said: str) -> None:
    async with a_service(handler) as ask:
        with pytest.raises(error, match=said) as raised:
            await ask({"order": "A-1"})
    if isinstance(raised.value, TemporaryError) and said == "status 429":
        assert raised.value.retry_after == 3.0


async def test_a_body_that_swells_is_not_unpacked() -> None:
    async def bomb(_: web.Request) -> web.Response:
        return web.Response(body=gzip.compress(b" " * 50_000_000), headers={"Content-Encoding": "gzip"})

    async with a_service(bomb) as ask:
        with pytest.raises(PermanentError):
            await ask({"order": "A-1"})


async def test_a_redirect_is_not_followed() -> None:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.path)
        return web.Response(status=302, headers={"Location": "/secret"})

    async with a_service(handler) as ask:
        with pytest.raises(PermanentError, match="status 302; redirects are not followed"):
            await ask({"order": "A-1"})
    assert seen == ["/refunds/A-1"]


async def test_a_service_that_is_not_there_is_temporary_and_its_url_is_told_nobody() -> None:
    settings = HttpSource.model_validate({"url": "http://127.0.0.1:1/key-in-here/{order}", "networks": LOOPBACK})
    async with http_source(settings) as ask:
        with pytest.raises(TemporaryError, match=r"^no answer \(ClientConnectorError\)$") as raised:
            await ask({"order": "A-1"})
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("A-1", "/refunds/A-1"),
        ("../admin?x=1#y", "/refunds/..%2Fadmin%3Fx%3D1%23y"),
        ("a b/ä%2F", "/refunds/a%20b%2F%C3%A4%252F"),
        (42, "/refunds/42"),
        (True, "/refunds/true"),
        (Decimal("1E+2"), "/refunds/100"),
    ],
)
async def test_a_key_is_one_part_of_the_path_whatever_stands_in_it(key: Any, written: str) -> None:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.raw_path)
        return web.Response(text="[]")

    async with a_service(handler) as ask:
        await ask({"order": key})
    assert seen == [written]


def test_a_key_is_no_step_in_a_path_and_leaves_the_host_alone() -> None:
    for step in (".", ".."):
        with pytest.raises(PermanentError, match="the key is a step in a path"):
            url_of("https://payments.example.com/refunds/{order}", {"order": step})
    for key in ("@evil.example.com", "//evil.example.com", "\\evil", "x\r\nHost: evil"):
        url = url_of("https://payments.example.com/refunds?order={order}", {"order": key})
        assert (url.host, url.path) == ("payments.example.com", "/refunds")
        assert "\r" not in str(url)


async def test_secrets_come_from_the_settings_or_from_a_file_that_may_change(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("Bearer one\n")
    seen: list[tuple[str | None, str | None]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.headers.get("X-Key"), request.headers.get("Authorization")))
        return web.Response(text="[]")

    async with a_service(handler, headers={"X-Key": "k"}, header_files={"Authorization": str(secret)}) as ask:
        await ask({"order": "A-1"})
        secret.write_text("Bearer two\n")
        await ask({"order": "A-1"})
        secret.unlink()
        with pytest.raises(TemporaryError, match=r"header_files.Authorization cannot be read \(FileNotFoundError\)"):
            await ask({"order": "A-1"})
    assert seen == [("k", "Bearer one"), ("k", "Bearer two")]
    with pytest.raises(ConfigurationError, match=r"header_files\.Authorization cannot be read"):
        async with a_service(handler, header_files={"Authorization": str(secret)}):
            pass


def test_no_secret_is_in_the_terms_or_in_what_a_mistake_says() -> None:
    written = {"http": {"url": "https://p.example.com/{order}", "headers": {"Authorization": "hunter2"}}}
    settings = TracegradeSettings.model_validate({"records": {"payments": written}}).records["payments"]
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in repr(source_of("payments", settings).terms)
    with pytest.raises(ValidationError) as raised:
        HttpSource.model_validate({"url": "https://p.example.com/{order}", "headers": {"Authorization": "hunter2\nx"}})
    assert "hunter2" not in str(raised.value)


# Addresses


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "0.0.0.0",  # noqa: S104 - what must be refused
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1%eth0",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "localhost",
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not allowed(address, ())


def test_public_addresses_and_the_networks_that_are_written_are_allowed() -> None:
    networks = HttpSource.model_validate({"url": "https://p.example.com/{a}", "networks": ["10.0.0.0/8"]}).networks
    assert all(allowed(one, ()) for one in ("93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822"))
    assert allowed("10.9.9.9", networks)
    assert allowed("::ffff:10.9.9.9", networks)
    assert not allowed("192.168.0.1", networks)


class Names(AbstractResolver):
    """A resolver that says what it is told, in turn."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def resolve(self, host: str, port: int = 0, family: int = AF_INET) -> list[ResolveResult]:
        self.asked += 1
        said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [ResolveResult(hostname=host, host=one, port=port, family=family, proto=0, flags=0) for one in said]

    async def close(self) -> None:
        """Nothing is held."""


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::ffff:127.0.0.1"], ["169.254.169.254"]])
async def test_a_name_that_points_into_the_own_network_is_not_asked(addresses: list[str]) -> None:
    reached: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        reached.append(request.path)
        return web.Response(text="{}")

    application = web.Application()
    application.router.add_get("/{tail:.*}", handler)
    async with TestServer(application) as server:
        settings = HttpSource.model_validate({"url": f"http://payments.example.com:{server.port}/{{order}}"})
        async with http_source(settings, Names(addresses)) as ask:
            with pytest.raises(PermanentError, match="the host has an address that is not public"):
                await ask({"order": "A-1"})
    assert reached == []


async def test_a_name_is_resolved_once_and_what_was_checked_is_what_is_reached() -> None:
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    hosts: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        hosts.append(request.host)
        return web.Response(text="{}")

    application = web.Application()
    application.router.add_get("/{tail:.*}", handler)
    async with TestServer(application) as server:
        settings = HttpSource.model_validate(
            {"url": f"http://payments.example.com:{server.port}/{{order}}", "networks": ["127.0.0.0/8"]}
        )
        async with http_source(settings, names) as ask:
            assert await ask({"order": "A-1"}) == {}
        assert (names.asked, hosts) == (1, [f"payments.example.com:{server.port}"])
        async with http_source(settings, names) as ask:
            with pytest.raises(PermanentError, match="not public"):
                await ask({"order": "A-1"})


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "169.254.169.254"])
async def test_a_url_of_an_address_that_is_not_allowed_is_refused_at_the_start(host: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a public address; write the network that it is in under networks"):
        async with http_source(HttpSource.model_validate({"url": f"http://{host}/{{a}}"})):
            pass


@pytest.mark.parametrize("host", ["2130706433", "127.1", "0x7f.1"])
async def test_an_address_in_another_spelling_reaches_nothing(host: str) -> None:
    try:
        async with http_source(HttpSource.model_validate({"url": f"http://{host}:9/{{a}}"})) as ask:
            with pytest.raises((PermanentError, TemporaryError)):
                await asyncio.wait_for(ask({"a": 1}), 10)
    except ConfigurationError:
        pass


async def test_the_resolver_of_the_machine_is_asked_and_closed() -> None:
    resolver = AllowedAddresses(HttpSource.model_validate({"url": "http://a.example/{a}", "networks": LOOPBACK}).networks)
    assert {one["host"] for one in await resolver.resolve("localhost", 80)} <= {"127.0.0.1", "::1"}
    await resolver.close()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("payments.example.com/{order}", "this is no URL; write it whole"),
        ("ftp://payments.example.com/{order}", "this is no URL"),
        ("https://user:hunter2@payments.example.com/{order}", "there is a user or password in the URL"),
        ("https://{order}.example.com/", "the host is always the same"),
        ("https://payments.example.com/{order id}", "each as {name}"),
        ("https://payments.example.com/#{order}", "parameters stand in the path and in the query"),
    ],
)
def test_a_url_that_cannot_be_meant_is_refused(url: str, sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence) as raised:
        HttpSource.model_validate({"url": url})
    assert "hunter2" not in str(raised.value)
