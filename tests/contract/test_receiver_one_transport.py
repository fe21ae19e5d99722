"""What only one of the two transports has."""

import gzip
from collections.abc import AsyncIterator

import aiohttp
import grpc.aio
import pytest
from google.protobuf.json_format import Parse
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from unit.otlp.transports import NOW, Service, mixed, named, serving
from unit.otlp.wire_forms import as_json

from collectors.otlp.grpc import SERVICE, serve
from collectors.otlp.keys import Keys
from collectors.otlp.receiver import Encoding, Receiver
from pipeline.errors import ConfigurationError


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    async for one in serving({}):
        yield one


class TestHttpAlone:
    """What only HTTP has: methods, media types, content encodings, a health check."""

    @pytest.fixture
    async def client(self, service: Service) -> AsyncIterator[aiohttp.ClientSession]:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{service.http_port}") as client:
            yield client

    async def test_another_method_is_not_allowed(self, client: aiohttp.ClientSession) -> None:
        async with client.get("/v1/traces") as response:
            assert (response.status, response.content_type, response.headers["Allow"]) == (405, "text/plain", "POST")

    @pytest.mark.parametrize(
        "media_type", [None, "text/plain", "application/octet-stream", "application/xml", "application/grpc"]
    )
    async def test_another_media_type_is_refused_with_what_to_send(
        self, client: aiohttp.ClientSession, media_type: str | None
    ) -> None:
        headers = {"Content-Type": media_type} if media_type else {}
        skipped = ["Content-Type"] if media_type is None else []
        async with client.post("/v1/traces", data=b"{}", headers=headers, skip_auto_headers=skipped) as response:
            assert (response.status, response.content_type) == (415, "text/plain")
            assert await response.text() == "Content-Type must be application/x-protobuf or application/json\n"

    @pytest.mark.parametrize(
        "media_type", ["application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8;x=y"]
    )
    async def test_parameters_and_case_of_the_media_type_do_not_matter(
        self, client: aiohttp.ClientSession, media_type: str
    ) -> None:
        async with client.post("/v1/traces", data=b"{}", headers={"Content-Type": media_type}) as response:
            assert (response.status, response.content_type, await response.read()) == (200, "application/json", b"{}")

    async def test_full_success_in_protobuf_is_no_bytes(self, client: aiohttp.ClientSession) -> None:
        headers = {"Content-Type": "application/x-protobuf"}
        async with client.post("/v1/traces", data=named("a").SerializeToString(), headers=headers) as response:
            assert (response.status, response.content_type, await response.read()) == (200, "application/x-protobuf", b"")

    async def test_rejected_spans_in_json_is_a_string_as_int64_are(self, client: aiohttp.ClientSession) -> None:
        async with client.post(
            "/v1/traces", data=as_json(mixed(span_id=b"x")), headers={"Content-Type": "application/json"}
        ) as response:
            assert (await response.json())["partialSuccess"]["rejectedSpans"] == "1"

    @pytest.mark.parametrize("media_type", list(Encoding))
    @pytest.mark.parametrize(
        ("encoding", "body"),
        [
            ("gzip", b""),
            ("gzip", b"\x1f\x8b"),
            ("gzip", gzip.compress(b"{}")[:-4]),
            ("gzip", b"{}"),
            ("zstd", b"x"),
            ("deflate", b"x"),
        ],
        ids=["empty", "header", "cut short", "plain", "zstd", "deflate"],
    )
    async def test_a_bad_content_encoding_is_a_bad_request(
        self, client: aiohttp.ClientSession, media_type: Encoding, encoding: str, body: bytes
    ) -> None:
        headers = {"Content-Type": media_type.value, "Content-Encoding": encoding}
        async with client.post("/v1/traces", data=body, headers=headers) as response:
            assert (response.status, response.content_type) == (400, media_type)
            raw = await response.read()
        status = Parse(raw, Status()) if media_type is Encoding.JSON else Status.FromString(raw)
        assert "gzip" in status.message

    async def test_several_gzip_members_and_identity_are_accepted(self, client: aiohttp.ClientSession) -> None:
        members = gzip.compress(b'{"resource') + gzip.compress(b'Spans": []}')
        for encoding, body in (("gzip", members), ("identity", b"{}")):
            headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
            async with client.post("/v1/traces", data=body, headers=headers) as response:
                assert response.status == 200

    async def test_no_bytes_of_json_are_a_bad_request(self, client: aiohttp.ClientSession) -> None:
        async with client.post("/v1/traces", data=b"", headers={"Content-Type": "application/json"}) as response:
            assert response.status == 400

    async def test_the_health_check_answers(self, client: aiohttp.ClientSession) -> None:
        async with client.get("/healthz") as response:
            assert (response.status, await response.text()) == (200, "ok\n")


class TestGrpcAlone:
    """What only gRPC has: methods by name, and a port of its own."""

    async def test_another_method_is_unimplemented(self, service: Service) -> None:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{service.grpc_port}") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await channel.unary_unary(f"/{SERVICE}/Import", None, None)(b"")
        assert refusal.value.code() is grpc.StatusCode.UNIMPLEMENTED

    async def test_a_port_in_use_is_a_configuration_error(self, service: Service) -> None:
        receiver = Receiver(service.store, lambda: NOW, Keys({}, "open"))
        with pytest.raises(ConfigurationError, match=r"receiver\.grpc_port: cannot listen on 127\.0\.0\.1:\d+"):
            await serve(receiver, "127.0.0.1", service.grpc_port)
