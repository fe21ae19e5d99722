"""The webhook against a real server that takes, refuses, breaks, stalls and redirects."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from multidict import CIMultiDict
from pydantic import SecretStr

from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.time import SECOND
from pipeline.model.window import Notification, Transition
from pipeline.stages.alert import AlertSettings
from sinks.alerts.webhook import Webhook, retry_after

NOTIFICATION = Notification("shop", "ab" * 16, Transition.FIRED, "pager", '{"why":"Ü"}', due_ns=0)
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Receiver:
    """Answers what it is told to, in turn, and remembers what it was sent."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.got: list[tuple[CIMultiDict[str], bytes]] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.got.append((CIMultiDict(request.headers), await request.read()))
        return await self.answers.pop(0)(request)

    def webhook(self, session: aiohttp.ClientSession, timeout: int = 10 * SECOND) -> Webhook:
        headers = {"Authorization": SecretStr("Bearer t0ken")}
        return Webhook(AlertSettings(name="pager", webhook=SecretStr(self.url), timeout=timeout, headers=headers), session)


def answer(status: int, **headers: str) -> Answer:
    async def answered(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers={name.replace("_", "-"): value for name, value in headers.items()})

    return answered


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    async with TestServer(app) as server:
        made.url = str(server.make_url("/hooks/s3cret"))
        yield made


async def test_it_posts_json_with_the_idempotency_key(receiver: Receiver, session: aiohttp.ClientSession) -> None:
    receiver.answers = [answer(200)]
    await receiver.webhook(session).send(NOTIFICATION)
    [(headers, body)] = receiver.got
    assert headers["Idempotency-Key"] == NOTIFICATION.idempotency_key
    assert headers["Content-Type"] == "application/json"
    assert headers["Authorization"] == "Bearer t0ken"
    assert body == NOTIFICATION.body.encode()


@pytest.mark.parametrize("status", [200, 201, 202, 204])
async def test_every_2xx_answer_confirms(receiver: Receiver, session: aiohttp.ClientSession, status: int) -> None:
    receiver.answers = [answer(status)]
    await receiver.webhook(session).send(NOTIFICATION)
    assert [body for _, body in receiver.got] == [NOTIFICATION.body.encode()], "sent once, and no error"


async def test_what_failed_once_is_sent_again_under_the_same_key(receiver: Receiver, session: aiohttp.ClientSession) -> None:
    receiver.answers = [answer(500), answer(200)]
    webhook = receiver.webhook(session)
    with pytest.raises(TemporaryError, match="alert pager: the receiver answered 500"):
        await webhook.send(NOTIFICATION)
    await webhook.send(NOTIFICATION)
    assert {headers["Idempotency-Key"] for headers, _ in receiver.got} == {NOTIFICATION.idempotency_key}


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
async def test_trouble_that_passes_is_temporary(receiver: Receiver, session: aiohttp.ClientSession, status: int) -> None:
    receiver.answers = [answer(status)]
    with pytest.raises(TemporaryError) as trouble:
        await receiver.webhook(session).send(NOTIFICATION)
    assert trouble.value.retry_after is None


async def test_a_receiver_that_is_busy_says_for_how_long(receiver: Receiver, session: aiohttp.ClientSession) -> None:
    receiver.answers = [
        answer(429, Retry_After="7"),
        answer(503, Date="Mon, 21 Sep 2026 12:00:00 GMT", Retry_After="Mon, 21 Sep 2026 12:01:30 GMT"),
    ]
    for seconds in (7, 90):
        with pytest.raises(TemporaryError) as trouble:
            await receiver.webhook(session).send(NOTIFICATION)
        assert trouble.value.retry_after == seconds


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413, 422])
async def test_a_refusal_is_permanent(receiver: Receiver, session: aiohttp.ClientSession, status: int) -> None:
    receiver.answers = [answer(status)]
    with pytest.raises(PermanentError, match=str(status)):
        await receiver.webhook(session).send(NOTIFICATION)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(receiver: Receiver, session: aiohttp.ClientSession, status: int) -> None:
    receiver.answers = [answer(status, Location="/elsewhere"), answer(200)]
    with pytest.raises(PermanentError, match="redirects are not followed"):
        await receiver.webhook(session).send(NOTIFICATION)
    assert len(receiver.got) == 1


async def test_a_receiver_that_does_not_answer_in_time_is_temporary_trouble(
    receiver: Receiver, session: aiohttp.ClientSession
) -> None:
    release = asyncio.Event()

    async def stall(_: web.Request) -> web.StreamResponse:
        await release.wait()
        return web.Response()

    receiver.answers = [stall]
    with pytest.raises(TemporaryError, match="Timeout"):
        await receiver.webhook(session, timeout=SECOND // 20).send(NOTIFICATION)
    release.set()


async def test_a_receiver_that_hangs_up_is_temporary_trouble(receiver: Receiver, session: aiohttp.ClientSession) -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    receiver.answers = [hang_up]
    with pytest.raises(TemporaryError):
        await receiver.webhook(session).send(NOTIFICATION)


async def test_a_receiver_that_is_not_there_is_temporary_trouble(receiver: Receiver, session: aiohttp.ClientSession) -> None:
    with socket.socket() as taken:
        # Bound and not listening: connections are refused.
        taken.bind(("127.0.0.1", 0))
        receiver.url = f"http://127.0.0.1:{taken.getsockname()[1]}/hooks/s3cret"
        with pytest.raises(TemporaryError):
            await receiver.webhook(session).send(NOTIFICATION)


async def test_no_error_shows_the_url_or_the_token(receiver: Receiver, session: aiohttp.ClientSession) -> None:
    receiver.answers = [answer(500), answer(400), answer(302, Location="/hooks/s3cret")]
    webhook = receiver.webhook(session)
    for _ in range(3):
        with pytest.raises((TemporaryError, PermanentError)) as trouble:
            await webhook.send(NOTIFICATION)
        assert "s3cret" not in str(trouble.value)
        assert "t0ken" not in str(trouble.value)
    receiver.url = "http://127.0.0.1:1/hooks/s3cret"
    with pytest.raises(TemporaryError) as trouble:
        await receiver.webhook(session).send(NOTIFICATION)
    assert "s3cret" not in str(trouble.value)
    assert trouble.value.__suppress_context__


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "120"}, 120),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "٤"}, None),
        ({"Retry-After": "Mon, 21 Sep 2026 12:01:30 GMT"}, None),
        ({"Retry-After": "Mon, 21 Sep 2026 12:01:30 GMT", "Date": "Mon, 21 Sep 2026 12:02:00 -0000"}, 0),
        ({"Retry-After": "Mon, 21 Sep 2026 12:01:30 GMT", "Date": "Mon, 21 Sep 2026 12:01:00 GMT"}, 30),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds
