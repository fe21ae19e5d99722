"""``POST /api/feedback``: looked up, redacted, stored, then answered; and refused as spans are."""

import io
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import pytest
from unit.otlp.transports import on_http

from collectors.feedback.desk import FeedbackDesk
from collectors.feedback.http import MAX_BODY, PATH, routes
from collectors.otlp.keys import Keys
from collectors.otlp.receiver import Receiver
from collectors.redaction.configured import redactor
from pipeline.config.redaction import RedactionSettings
from pipeline.errors import TemporaryError
from pipeline.model.result import Feedback
from pipeline.model.run import RunAddress

TRACE, RUN = "ab" * 16, "cd" * 16


class Runs:
    """One run of one project, in one conversation."""

    def __init__(self) -> None:
        self.away = False
        self.asked = 0

    async def run(self, project: str, run_id: str) -> RunAddress | None:
        return self._known((project, run_id) == ("shop", RUN))

    async def last_of(self, project: str, conversation_id: str) -> RunAddress | None:
        return self._known((project, conversation_id) == ("shop", "talk"))

    def _known(self, known: bool) -> RunAddress | None:
        self.asked += 1
        if self.away:
            raise TemporaryError("the store is away", retry_after=5.0)
        return RunAddress(TRACE, RUN) if known else None


class World:
    """A served route, and what it stores."""

    def __init__(self) -> None:
        self.runs = Runs()
        self.stored: list[Feedback] = []
        self.counted: list[int] = []
        self.trouble: list[Exception] = []
        self.url = ""

    async def store(self, feedback: Sequence[Feedback]) -> None:
        if self.trouble:
            raise self.trouble.pop()
        self.stored += feedback

    async def post(self, said: Any, key: str = "secret", **headers: str) -> tuple[int, dict[str, Any]]:
        named = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"} | headers
        raw = said if isinstance(said, bytes) else json.dumps(said).encode()
        async with aiohttp.ClientSession() as client, client.post(self.url, data=io.BytesIO(raw), headers=named) as response:
            self.headers = response.headers
            read = await response.read()
            return response.status, json.loads(read) if response.content_type == "application/json" else {"text": read.decode()}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    desk = FeedbackDesk(
        made.store, made.runs, lambda: 7, redactor(RedactionSettings()), lambda count, _: made.counted.append(count)
    )
    receiver = Receiver({}, lambda: 7, Keys({"secret": "shop", "other": "else"}, "open"))
    async with on_http(routes(receiver, desk)) as port:
        made.url = f"http://127.0.0.1:{port}{PATH}"
        yield made


async def test_by_trace_nothing_is_looked_up(world: World) -> None:
    status, said = await world.post({"trace_id": TRACE, "value": "down", "author": "ann", "comment": "wrong"})
    (stored,) = world.stored
    assert (status, said) == (
        200,
        {"accepted": 1, "feedback": [{"id": stored.id, "trace_id": TRACE, "run_id": "", "value": -1.0}]},
    )
    assert (stored.project, stored.run_id, stored.author, stored.comment, stored.received_ns) == ("shop", "", "ann", "wrong", 7)
    assert (world.runs.asked, world.counted) == (0, [1])
    await world.post({"trace_id": TRACE, "run_id": RUN, "value": 1})
    assert (world.stored[1].run_id, world.runs.asked) == (RUN, 0)


@pytest.mark.parametrize("about", [{"run_id": RUN.upper()}, {"conversation_id": "talk"}])
async def test_by_run_or_conversation_the_trace_is_looked_up_in_the_callers_project(about: dict[str, str], world: World) -> None:
    assert (await world.post({"value": 1} | about))[0] == 200
    assert [(one.project, one.trace_id, one.run_id) for one in world.stored] == [("shop", TRACE, RUN)]
    status, said = await world.post({"value": 1} | about, key="other")
    assert status == 404
    assert "send its trace_id" in said["message"]
    assert len(world.stored) == 1


async def test_one_that_is_unknown_among_several_stores_none(world: World) -> None:
    status, _ = await world.post([{"trace_id": TRACE, "value": 1}, {"run_id": "00" * 16, "value": 1}])
    assert (status, world.stored) == (404, [])


async def test_while_the_store_is_away_only_look_ups_wait(world: World) -> None:
    world.runs.away = True
    assert (await world.post({"run_id": RUN, "value": 1}))[0] == 503
    assert world.headers["Retry-After"] == "5"
    assert (await world.post({"trace_id": TRACE, "value": 1}))[0] == 200


async def test_success_is_told_after_it_is_stored(world: World) -> None:
    world.trouble = [TemporaryError("not now")]
    assert (await world.post({"trace_id": TRACE, "value": 1}))[0] == 503
    assert (world.stored, world.counted) == ([], [])


async def test_a_key_may_stand_in_the_header_or_beside_the_value(world: World) -> None:
    for said, headers in (({}, {"Idempotency-Key": "k"}), ({}, {"Idempotency-Key": "k"}), ({"id": "k"}, {})):
        await world.post({"trace_id": TRACE, "value": 1} | said, **headers)
    first, again, named = (one.id for one in world.stored)
    assert first == again != named
    await world.post([{"trace_id": TRACE, "value": 1}, {"trace_id": TRACE, "value": 1}], **{"Idempotency-Key": "k"})
    assert world.stored[3].id == first
    assert world.stored[4].id != first, "the parts of one request are numbered under its key"


async def test_secrets_in_texts_are_replaced_and_the_id_is_of_what_was_said(world: World) -> None:
    secret = "ghp_" + "a1B2" * 9
    for value in (secret, "ghp_" + "c3D4" * 9):
        await world.post({"trace_id": TRACE, "value": 1, "comment": f"my token is {value}", "author": value})
    assert secret not in repr(world.stored)
    assert "[redacted:" in world.stored[0].comment
    assert world.stored[0].id != world.stored[1].id


@pytest.mark.parametrize("key", ["wrong", ""])
async def test_nobody_without_a_key_says_anything(key: str, world: World) -> None:
    assert (await world.post({"trace_id": TRACE, "value": 1}, key=key))[0] == 401
    assert world.stored == []


async def test_only_json_is_read_so_that_no_page_sends_it_unasked(world: World) -> None:
    status, _ = await world.post({"trace_id": TRACE, "value": 1}, **{"Content-Type": "text/plain"})
    assert (status, world.stored) == (415, [])


@pytest.mark.parametrize(("raw", "status"), [(b"{", 400), (b" " * (MAX_BODY + 1), 413)])
async def test_what_is_wrong_is_told(raw: bytes, status: int, world: World) -> None:
    told, said = await world.post(raw)
    assert told == status
    assert said["message"]


async def test_where_there_is_no_store_only_traces_can_be_named(world: World) -> None:
    storeless = routes(Receiver({}, lambda: 7, Keys({}, "open")), FeedbackDesk(world.store, None, lambda: 7))
    async with on_http(storeless) as port:
        world.url = f"http://127.0.0.1:{port}{PATH}"
        status, said = await world.post({"run_id": RUN, "value": 1})
        assert (status, said["message"]) == (
            400,
            "there is no store here to look a run or a conversation up in: send its trace_id",
        )
        assert (await world.post({"trace_id": TRACE, "value": 1}))[0] == 200
