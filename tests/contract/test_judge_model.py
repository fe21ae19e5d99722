"""What every JudgeModel does, shown on the OpenAI client against a real server over real HTTP."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from aiohttp import web
from judge_builders import a_verdict
from msgspec.structs import replace

from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.judges import reply
from pipeline.judges.model import ChatRequest, JudgeModel, Reply
from pipeline.judges.openai import OpenAIModel, retry_after
from pipeline.judges.scripted import MODEL, Canned, ScriptedJudge, failing, hanging, rate_limited
from pipeline.judges.settings import JudgeSettings
from pipeline.model.step import Message
from pipeline.model.time import SECOND

MESSAGES = (Message("system", "Rules."), Message("user", "Data."))
REQUEST = ChatRequest(MESSAGES, reply.schema(1, 5), most_tokens=500)
KEY = "sk-secret-4711"

Open = Callable[..., AbstractAsyncContextManager[JudgeModel]]


def open_openai(url: str, environ: Mapping[str, str] | None = None, **settings: Any) -> OpenAIModel:
    known = JudgeSettings.model_validate({"base_url": url, "model": MODEL, "timeout": 10 * SECOND} | settings)
    return OpenAIModel(known, environ or {})


@pytest.fixture(params=[open_openai], ids=["openai"])
def connect(request: pytest.FixtureRequest) -> Open:
    implementation: Open = request.param
    return implementation


async def ask(model: JudgeModel) -> Reply:
    return await model.ask(REQUEST)


async def test_it_returns_text_tokens_and_who_answered(connect: Open) -> None:
    async with ScriptedJudge([Canned(text=a_verdict(4))]) as server, connect(server.url) as model:
        reply = await ask(model)
    assert (reply.text, reply.finish_reason) == (a_verdict(4), "stop")
    assert (reply.served_model, reply.fingerprint) == (MODEL, "scripted-rules-1")
    assert (reply.input_tokens, reply.output_tokens) == (2, len(a_verdict(4)) // 4)


async def test_it_sends_what_it_was_given(connect: Open) -> None:
    async with ScriptedJudge() as server, connect(server.url, {"OPENAI_API_KEY": KEY}) as model:
        await model.ask(replace(REQUEST, seed=23, temperature=0.7))
    (asked,) = server.asked
    assert asked.body["messages"] == [{"role": "system", "content": "Rules."}, {"role": "user", "content": "Data."}]
    assert (asked.body["model"], asked.body["seed"], asked.body["temperature"]) == (MODEL, 23, 0.7)
    assert asked.authorization == f"Bearer {KEY}"


async def test_tokens_that_nobody_counted_are_unknown(connect: Open) -> None:
    async with ScriptedJudge([Canned(usage=False)]) as server, connect(server.url) as model:
        reply = await ask(model)
    assert (reply.input_tokens, reply.output_tokens) == (None, None)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_what_may_pass_is_temporary(connect: Open, status: int) -> None:
    async with ScriptedJudge(lambda _: failing(status)) as server, connect(server.url) as model:
        with pytest.raises(TemporaryError):
            await ask(model)


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_what_would_fail_again_is_permanent(connect: Open, status: int) -> None:
    async with ScriptedJudge(lambda _: failing(status)) as server, connect(server.url) as model:
        with pytest.raises(PermanentError):
            await ask(model)


@pytest.mark.parametrize(
    ("canned", "advice"),
    [
        (failing(401), "OPENAI_API_KEY"),
        (failing(403), "OPENAI_API_KEY"),
        (failing(404), "judge.model"),
        (failing(402), "out of money"),
        (failing(429, code="insufficient_quota"), "out of money"),
        (failing(307, headers={"Location": "http://127.0.0.1:1/v1/chat/completions"}), "redirects"),
    ],
)
async def test_what_a_person_must_mend_says_what_to_do(connect: Open, canned: Canned, advice: str) -> None:
    async with ScriptedJudge(lambda _: canned) as server, connect(server.url) as model:
        with pytest.raises(ConfigurationError, match=advice):
            await ask(model)
    assert len(server.asked) == 1


async def test_a_refused_key_is_not_repeated(connect: Open) -> None:
    async with ScriptedJudge(key="another") as server, connect(server.url, {"OPENAI_API_KEY": KEY}) as model:
        with pytest.raises(ConfigurationError) as refusal:
            await ask(model)
    assert KEY not in str(refusal.value)


async def test_the_wait_that_a_rate_limit_asks_for_is_handed_on(connect: Open) -> None:
    async with ScriptedJudge([rate_limited("3"), rate_limited("0.5"), failing(429)]) as server, connect(server.url) as model:
        waits = []
        for _ in range(3):
            with pytest.raises(TemporaryError) as limited:
                await ask(model)
            waits.append(limited.value.retry_after)
    assert waits == [3.0, 0.5, None]


async def test_it_does_not_retry_by_itself(connect: Open) -> None:
    async with ScriptedJudge(lambda _: failing(503)) as server, connect(server.url) as model:
        with pytest.raises(TemporaryError):
            await ask(model)
    assert len(server.asked) == 1


async def test_silence_is_temporary(connect: Open) -> None:
    async with ScriptedJudge([hanging()]) as server, connect(server.url, timeout=SECOND // 5) as model:
        with pytest.raises(TemporaryError, match="did not answer within"):
            await ask(model)


async def test_an_answer_that_only_trickles_in_is_temporary(connect: Open) -> None:
    done = asyncio.Event()

    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        while not done.is_set():
            await response.write(b" ")
            await asyncio.wait({asyncio.ensure_future(done.wait())}, timeout=0.05)
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", trickle)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with asyncio.timeout(30), connect(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", timeout=SECOND // 2) as model:
            with pytest.raises(TemporaryError, match="did not answer within"):
                await ask(model)
    finally:
        done.set()
        await runner.cleanup()


async def test_a_refused_connection_is_temporary(connect: Open) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with connect(f"http://127.0.0.1:{taken.getsockname()[1]}/v1") as model:
            with pytest.raises(TemporaryError, match="cannot be reached"):
                await ask(model)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("<html>502 Bad Gateway</html>", "text/html"),
        ("<html>502 Bad Gateway</html>", "application/json"),
        ('{"choices": "none"}', "application/json"),
        ('{"choices": [{"message": {"content": ["a", "b"]}}]}', "application/json"),
        ("", "application/json"),
        ("[]", "application/json"),
    ],
)
async def test_an_answer_that_is_no_completion_is_a_reply_whose_text_is_kept(connect: Open, body: str, content_type: str) -> None:
    async with ScriptedJudge([Canned(body=body, content_type=content_type)]) as server, connect(server.url) as model:
        assert await ask(model) == Reply(text=body)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"choices": []}', Reply("")),
        ('{"choices": [{"message": {"content": null, "refusal": "I will not."}}]}', Reply("I will not.", "refusal")),
        ('{"choices": [{"message": {"content": "5"}}], "model": null, "usage": null, "system_fingerprint": null}', Reply("5")),
    ],
)
async def test_what_endpoints_leave_out_is_left_out(connect: Open, body: str, said: Reply) -> None:
    async with ScriptedJudge([Canned(body=body)]) as server, connect(server.url) as model:
        assert await ask(model) == said


async def test_many_may_ask_at_once(connect: Open) -> None:
    async with ScriptedJudge() as server, connect(server.url) as model:
        replies = await asyncio.gather(*(ask(model) for _ in range(20)))
    assert len(replies) == len(server.asked) == 20


def form(asked: Any) -> str:
    form = asked.body.get("response_format", {})
    return str(form.get("type", "none")) + ("+schema" if "schema" in form else "")


@pytest.mark.parametrize("refusal", [400, 422, 500])
@pytest.mark.parametrize(
    ("formats", "tried"),
    [
        ({"json_schema", "json_object"}, ["json_schema"]),
        ({"json_object_schema"}, ["json_schema", "json_object+schema"]),
        ({"json_object"}, ["json_schema", "json_object+schema", "json_object"]),
        (set(), ["json_schema", "json_object+schema", "json_object", "none"]),
    ],
)
async def test_the_form_of_the_reply_falls_back_until_one_is_taken_and_is_remembered(
    formats: set[str], tried: list[str], refusal: int
) -> None:
    async with ScriptedJudge(formats=frozenset(formats), format_refusal=refusal) as server, open_openai(server.url) as model:
        await ask(model)
        await ask(model)
    assert [form(asked) for asked in server.asked] == [*tried, tried[-1]]


@pytest.mark.parametrize("status", [400, 500])
async def test_a_form_that_was_taken_once_is_kept_through_trouble(status: int) -> None:
    async with ScriptedJudge([Canned(), failing(status)]) as server, open_openai(server.url) as model:
        await ask(model)
        with pytest.raises((TemporaryError, PermanentError)):
            await ask(model)
        await ask(model)
    assert [form(asked) for asked in server.asked] == ["json_schema"] * 3


async def test_an_outage_at_the_start_does_not_lower_the_form_for_good() -> None:
    async with ScriptedJudge([failing(500)] * 3) as server, open_openai(server.url) as model:
        with pytest.raises(TemporaryError):
            await ask(model)
        await ask(model)
    assert form(server.asked[-1]) == "json_schema"


async def test_the_schema_holds_a_model_to_the_scale() -> None:
    async with ScriptedJudge() as server, open_openai(server.url) as model:
        await ask(model)
    schema = server.asked[0].body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["score"]["anyOf"][0]["enum"] == [1, 2, 3, 4, 5]
    assert schema["required"] == ["score", "reason", "evidence"]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "Sun, 29 Nov 2026 12:00:30 GMT", "date": "Sun, 29 Nov 2026 12:00:00 GMT"}, 30.0),
        ({"retry-after": "Sun, 29 Nov 2026 11:00:00 GMT", "date": "Sun, 29 Nov 2026 12:00:00 GMT"}, 0.0),
        ({"retry-after": "Sun, 29 Nov 2026 12:00:30 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds
