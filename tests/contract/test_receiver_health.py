"""Health: asked over HTTP and gRPC, told to senders, and well again without a restart (O22)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import grpc.aio
import pytest
from contract.conformance import Told
from contract.product import Product, product
from grpc_health.v1 import health_pb2, health_pb2_grpc
from unit.otlp.transports import PATIENCE_S, TRANSPORTS, Service, named, serving

from collectors.otlp.traces import TRACES
from pipeline.apps.health import Health, backlog, disk
from pipeline.errors import TemporaryError

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Broker:
    """Something that a process needs."""

    def __init__(self) -> None:
        self.away = False

    async def check(self) -> str:
        if self.away:
            raise TemporaryError("no broker answers")
        return "3 brokers"


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
async def one(broker: Broker) -> AsyncIterator[Product]:
    async with product(checks={"brokers": broker.check}) as served:
        yield served


async def _asked(one: Product, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as client, client.get(one.served.http_url + path) as response:
        return response.status, await response.text()


async def _until_ready(one: Product, ready: bool) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while bool(one.health.trouble) == ready:  # noqa: ASYNC110 - it looks by itself
            await asyncio.sleep(0.01)


async def test_readiness_names_each_check_over_http(one: Product, broker: Broker, told: Told) -> None:
    assert await _asked(one, "/healthz") == (200, "ok\n")
    assert await _asked(one, "/readyz") == (200, '{"ready":true,"checks":{"brokers":{"ok":true,"detail":"3 brokers"}}}')
    broker.away = True
    await _until_ready(one, ready=False)
    assert await _asked(one, "/readyz") == (503, '{"ready":false,"checks":{"brokers":{"ok":false,"detail":"no broker answers"}}}')
    assert await _asked(one, "/healthz") == (200, "ok\n"), "a process is alive while its brokers are away"
    broker.away = False
    await _until_ready(one, ready=True)
    assert (await _asked(one, "/readyz"))[0] == 200
    told("O22", "/healthz, /readyz", "http json", "200, 503 while brokers are away, 200")


async def test_readiness_can_be_asked_and_watched_over_grpc(one: Product, broker: Broker, told: Told) -> None:
    async with grpc.aio.insecure_channel(one.served.grpc_address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for service in ("", TRACES.service):
            assert (await stub.Check(health_pb2.HealthCheckRequest(service=service))).status == SERVING
        watched = stub.Watch(health_pb2.HealthCheckRequest(service=""))
        seen = [(await watched.read()).status]
        broker.away = True
        seen.append((await asyncio.wait_for(watched.read(), PATIENCE_S)).status)
        broker.away = False
        seen.append((await asyncio.wait_for(watched.read(), PATIENCE_S)).status)
        assert seen == [SERVING, NOT_SERVING, SERVING]
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await stub.Check(health_pb2.HealthCheckRequest(service="another"))
        assert refusal.value.code() is grpc.StatusCode.NOT_FOUND
        watched.cancel()
    told("O22", "grpc.health.v1 Check and Watch", "grpc", "SERVING, NOT_SERVING, SERVING")


@pytest.mark.parametrize("where", TRANSPORTS)
async def test_while_not_ready_senders_are_told_to_come_back(where: str, told: Told) -> None:
    async with serving({}) as service:
        send = TRANSPORTS[where](service)
        service.trouble.append("brokers: no broker answers")
        answer = await send(named("a"))
        assert (answer.outcome, answer.retry_after) == ("retry", 1)
        assert answer.message == "nothing is accepted now: brokers: no broker answers"
        service.trouble.clear()
        assert (await send(named("a"))).outcome == "ok"
    told("O22", "a request while not ready", where, "503 / UNAVAILABLE, with when")


class TestStopping:
    """What a process does with requests while it stops (F20)."""

    async def _begun(self, service: Service, where: str) -> "asyncio.Task[str]":
        service.store.open.clear()
        service.store.entered.clear()
        begun = asyncio.create_task(self._outcome(service, where))
        await service.store.entered.wait()
        return begun

    async def _outcome(self, service: Service, where: str) -> str:
        return (await TRANSPORTS[where](service)(named("a"))).outcome

    @pytest.mark.parametrize("where", ["grpc", "http protobuf", "http json"])
    async def test_what_was_begun_is_finished_and_nothing_else_is_accepted(self, where: str, told: Told) -> None:
        async with serving({}) as service:
            begun = await self._begun(service, where)
            service.receiver.stop(30)
            assert await self._outcome(service, where) == "retry"
            service.store.open.set()
            assert await begun == "ok"
        told("F20", "begun before the stop, and ended in time", where, "ok")

    @pytest.mark.parametrize("where", ["grpc", "http protobuf", "http json"])
    async def test_what_does_not_end_in_time_is_told_to_come_back(self, where: str, told: Told) -> None:
        async with serving({}) as service:
            begun = await self._begun(service, where)
            service.receiver.stop(0.05)
            assert await begun == "retry"
            assert service.receiver.in_flight == 0
        told("F20", "begun before the stop, and not ended in time", where, "503 / UNAVAILABLE")


async def test_a_check_that_hangs_or_breaks_is_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.apps.health.PATIENCE_S", 0.01)

    async def hangs() -> str:
        await asyncio.Event().wait()
        return "never"

    async def breaks() -> str:
        raise ZeroDivisionError

    health = Health({"slow": hangs, "broken": breaks, "fine": _fine})
    assert health.trouble == "slow: not looked at yet; broken: not looked at yet; fine: not looked at yet"
    await health.look()
    assert health.trouble == "slow: no answer within 0 s; broken: ZeroDivisionError"


async def _fine() -> str:
    return ""


async def test_the_disk_and_the_backlog_are_measured(tmp_path: Path) -> None:
    waiting = 5
    health = Health(
        {
            "disk": disk(tmp_path, 1),
            "full disk": disk(tmp_path, 2**60),
            "backlog": backlog(lambda: waiting, 10, "spans"),
            "full": backlog(lambda: waiting, 5, "spans"),
        }
    )
    await health.look()
    assert health.findings["disk"].ok
    assert "GiB free" in health.findings["disk"].detail
    assert health.findings["backlog"].detail == "5 spans wait"
    assert not health.findings["full disk"].ok
    assert "1073741824.0 GiB are kept" in health.findings["full disk"].detail
    assert health.findings["full"].detail == "5 spans wait, and there is room for 5"


async def test_a_part_that_failed_ends_the_life_of_a_process() -> None:
    failed: list[BaseException] = []
    health = Health({}, lambda: failed[0] if failed else None)
    assert (await health._healthz(None)).status == 200  # type: ignore[arg-type]
    failed.append(RuntimeError())
    assert (await health._healthz(None)).status == 503  # type: ignore[arg-type]
