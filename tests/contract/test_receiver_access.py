"""Who gets in: keys on both ports from one table (S1, S20), pages in browsers (O21), names of this server."""

import asyncio
from typing import Any, Final

import aiohttp
import grpc
import grpc.aio
import pytest
from contract.conformance import Told
from contract.product import Product, over_grpc, product
from unit.otlp.transports import PATIENCE_S, Http, named
from unit.otlp.wire_forms import text

from collectors.otlp.keys import new_key
from collectors.otlp.signal import Encoding
from collectors.otlp.traces import TRACES

JSON: Final = {"Content-Type": "application/json"}
CORS: Final[dict[str, Any]] = {
    "cors": {"allowed_origins": ["https://app.example", "https://*.shop.example"], "allowed_headers": ["X-Mine"], "max_age": "1m"}
}
PREFLIGHT: Final = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}


FIRST, FIRST_HASH = new_key()
SECOND, SECOND_HASH = new_key()
OF_B, OF_B_HASH = new_key()
ENVIRONMENT = {"B_KEY": OF_B}
CONFIGURED = {"a": [FIRST_HASH, SECOND], "b": ["env:B_KEY"]}
"""Two live keys of one project, one of them hashed, and one of another."""
ACCESS = [
    ("no key", None, None),
    ("an empty key", "Bearer ", None),
    ("a wrong key", "Bearer wrong", None),
    ("a key in another case", f"Bearer {FIRST.swapcase()}", None),
    ("a key that is no longer configured", f"Bearer {new_key()[0]}", None),
    ("the hash in place of the key", f"Bearer {FIRST_HASH}", None),
    ("the digits of the hash", f"Bearer {FIRST_HASH.removeprefix('sha256:')}", None),
    ("another scheme", f"Basic {FIRST}", None),
    ("two keys", f"Bearer {FIRST} {SECOND}", None),
    ("the old key during a rotation", f"Bearer {FIRST}", "a"),
    ("the new key during a rotation", f"bearer {SECOND}", "a"),
    ("a key of another project", f"Bearer {OF_B}", "b"),
]


@pytest.mark.parametrize(("case", "authorization", "project"), ACCESS, ids=[case for case, _, _ in ACCESS])
@pytest.mark.parametrize("where", ["grpc", "http protobuf", "http json"])
async def test_one_table_of_keys_holds_for_both_ports(
    where: str, case: str, authorization: str | None, project: str | None, told: Told
) -> None:
    message = named("a", attributes=[text("tenant", "b"), text("project", "b")])
    async with product(ENVIRONMENT, keys=CONFIGURED) as one:
        if where == "grpc":
            metadata = (("authorization", authorization),) if authorization is not None else ()
            outcome = await over_grpc(one.served, message.SerializeToString(), metadata)
            expected = "OK" if project else "UNAUTHENTICATED"
        else:
            encoding = Encoding.JSON if "json" in where else Encoding.PROTOBUF
            outcome = await _over_http(one, Http(0, encoding).write(message), encoding, authorization)
            expected = "200" if project else "401"
        assert outcome == expected
        assert [span.project for span in one.store.spans] == ([project] if project else [])
    told("S1", case, where, outcome)


async def _over_http(one: Product, body: bytes, encoding: Encoding, authorization: str | None) -> str:
    headers = {"Content-Type": encoding.value} | ({"Authorization": authorization} if authorization is not None else {})
    async with aiohttp.ClientSession() as client, client.post(one.url, data=body, headers=headers) as response:
        assert response.content_type == encoding
        assert ("WWW-Authenticate" in response.headers) == (response.status == 401)
        return str(response.status)


async def test_over_http_a_stranger_is_refused_before_the_body_is_read(told: Told) -> None:
    async with product(ENVIRONMENT, keys=CONFIGURED) as one:
        host, _, port = one.served.http_url.removeprefix("http://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n")
        assert (await asyncio.wait_for(reader.readline(), PATIENCE_S)).split()[1] == b"401"
        writer.close()
    told("S1", "refused before the body is read", "http json", "401")


async def test_over_grpc_a_stranger_is_refused_before_the_message_is_read(told: Told) -> None:
    async with product(ENVIRONMENT, keys=CONFIGURED) as one, grpc.aio.insecure_channel(one.served.grpc_address) as channel:
        call = channel.stream_unary(f"/{TRACES.service}/Export", None, None)(None)  # no message is ever sent
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await asyncio.wait_for(_result(call), PATIENCE_S)
    assert refusal.value.code() is grpc.StatusCode.UNAUTHENTICATED
    told("S1", "refused before the body is read", "grpc", "UNAUTHENTICATED")


async def _result(call: Any) -> Any:
    return await call


@pytest.mark.parametrize("header", ["Authorization", "authorization", "AUTHORIZATION"])
async def test_over_http_the_name_of_the_header_is_in_any_case(header: str) -> None:
    headers = {**JSON, header: f"Bearer {FIRST}"}
    async with product(ENVIRONMENT, keys=CONFIGURED) as one, aiohttp.ClientSession() as client:
        response = await client.post(one.url, data=b"{}", headers=headers)
        assert response.status == 200


class TestNames:
    """S20: open without a key is open to this machine only, and not to pages that make a browser send here."""

    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8:4318", "[::1]:99", "LOCALHOST:1"])
    async def test_the_names_of_this_machine_are_answered(self, host: str) -> None:
        async with product() as one:
            assert await self._asked(one, host) == 200

    @pytest.mark.parametrize(
        "host", ["evil.example", "evil.example:4318", "127.0.0.1.evil.example", "10.0.0.1", "localhost.evil", "x@y"]
    )
    async def test_another_name_is_refused_in_the_type_of_the_request(self, host: str, told: Told) -> None:
        async with product() as one:
            assert await self._asked(one, host) == 403
            async with (
                aiohttp.ClientSession() as client,
                client.get(f"{one.served.http_url}/readyz", headers={"Host": host}) as page,
            ):
                assert (page.status, page.content_type) == (403, "text/plain")
            assert one.store.spans == []
        told("S20", "Host names somebody else, and no key is asked for", "http json", "403")

    async def test_with_keys_any_name_will_do(self) -> None:
        async with product(ENVIRONMENT, keys=CONFIGURED) as one:
            assert await self._asked(one, "collector.example", f"Bearer {FIRST}") == 200

    async def _asked(self, one: Product, host: str, authorization: str = "") -> int:
        headers = {**JSON, "Host": host, "Authorization": authorization}
        async with aiohttp.ClientSession() as client, client.post(one.url, data=b"{}", headers=headers) as response:
            assert response.content_type == "application/json"
            return response.status


class TestBrowsers:
    """O21: off by default, and then only for the pages that are named."""

    async def _asked(self, one: Product, method: str, origin: str, path: str = "/v1/traces", **headers: str) -> Any:
        sent = {"Origin": origin} | headers | (PREFLIGHT if method == "OPTIONS" else JSON)
        async with aiohttp.ClientSession() as client:
            return await client.request(
                method, one.served.http_url + path, headers=sent, data=b"{}" if method == "POST" else None
            )

    @pytest.mark.parametrize("origin", ["https://app.example", "https://eu.shop.example", "https://a.b.shop.example"])
    async def test_a_preflight_is_answered_before_anybody_asks_for_a_key(self, origin: str, told: Told) -> None:
        async with product(ENVIRONMENT, keys=CONFIGURED, **CORS) as one:
            response = await self._asked(one, "OPTIONS", origin)
            assert response.status == 204
            assert response.headers["Access-Control-Allow-Origin"] == origin
            assert response.headers["Access-Control-Allow-Methods"] == "POST"
            assert response.headers["Access-Control-Max-Age"] == "60"
            assert {"Authorization", "Content-Type", "X-Mine"} <= set(
                response.headers["Access-Control-Allow-Headers"].split(", ")
            )
            assert response.headers["Vary"] == "Origin"
        told("O21", "a preflight of a page that may send", "http json", "204, before auth")

    async def test_a_page_that_may_send_reads_the_answer_also_a_refusal(self, told: Told) -> None:
        async with product(ENVIRONMENT, keys=CONFIGURED, **CORS) as one:
            for key, status in ((FIRST, 200), ("wrong", 401)):
                response = await self._asked(one, "POST", "https://app.example", Authorization=f"Bearer {key}")
                assert (response.status, response.headers["Access-Control-Allow-Origin"]) == (status, "https://app.example")
                assert response.headers["Access-Control-Expose-Headers"] == "Retry-After"
            unread = await self._asked(one, "GET", "https://app.example")
            assert (unread.status, unread.headers["Allow"], unread.content_type) == (405, "POST", "text/plain")
        told("O21", "a page that may send", "http json", "200, readable")

    @pytest.mark.parametrize(
        "origin",
        [
            "https://evil.example",
            "http://app.example",
            "https://app.example:8443",
            "https://app.example.evil",
            "null",
            "https://x/.shop.example",
        ],
    )
    async def test_another_page_is_told_nothing(self, origin: str, told: Told) -> None:
        async with product(ENVIRONMENT, keys=CONFIGURED, **CORS) as one:
            for method in ("OPTIONS", "POST"):
                response = await self._asked(one, method, origin)
                assert (response.status, "Access-Control-Allow-Origin" in response.headers) == (
                    405 if method == "OPTIONS" else 401,
                    False,
                )
        told("O21", "a page that may not", "http json", "no Access-Control header")

    async def test_it_is_off_by_default_and_for_all_other_paths(self) -> None:
        async with product() as one:
            assert (await self._asked(one, "OPTIONS", "https://app.example")).status == 405
        async with product(**CORS) as one:
            response = await self._asked(one, "OPTIONS", "https://app.example", "/readyz")
            assert (response.status, "Access-Control-Allow-Origin" in response.headers) == (405, False)
