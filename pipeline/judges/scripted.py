"""The scripted judge: an OpenAI-compatible server on loopback that gives the verdicts of fixed rules, or what it is told to.

It makes the product's way to a model testable and showable without one. It is no judge of quality.
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Self

import msgspec
from aiohttp import web

from pipeline.judges.scripted_criteria import decision
from pipeline.judges.scripted_pairs import SeenPair, preference
from pipeline.judges.scripted_prompt import SeenPrompt
from pipeline.judges.scripted_rules import verdict

MODEL: Final = "scripted-judge-1"


class Canned(msgspec.Struct, frozen=True):
    """What to do instead of applying the rules.

    ``text`` is the content of a completion; ``body`` is a whole response, sent as it is. Neither means the rules' verdict.
    """

    text: str | None = None
    body: str | None = None
    content_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = {}
    hang: bool = False
    """Take the request and never answer."""
    delay_s: float = 0.0
    """Wait so long before the answer."""
    evidence: str | None = None
    """Put this in the place of the quote in the rules' verdict."""
    usage: bool = True
    finish_reason: str = "stop"


class Asked(msgspec.Struct, frozen=True):
    """A request that arrived."""

    body: dict[str, Any]
    authorization: str
    seen: SeenPrompt | None
    """The prompt, where it is one of ours."""


Script = Iterable[Canned] | Callable[[Asked], Canned | None]


def malformed(text: str = "I would say it is rather good.") -> Canned:
    """Return a reply without a verdict."""
    return Canned(text=text)


def failing(
    status: int, *, message: str = "scripted", code: str | None = None, headers: Mapping[str, str] | None = None
) -> Canned:
    """Return an error as OpenAI writes it."""
    error = {"error": {"message": message, "type": "scripted", "code": code}}
    return Canned(body=msgspec.json.encode(error).decode(), status=status, headers=headers or {})


def rate_limited(retry_after: str) -> Canned:
    """Return a 429 with ``Retry-After``."""
    return failing(429, message="slow down", headers={"Retry-After": retry_after})


def hanging() -> Canned:
    """Return silence."""
    return Canned(hang=True)


def wrong_quote(evidence: str = "a refund of 120.00 USD was issued on the moon") -> Canned:
    """Return the rules' verdict with a quote that stands nowhere."""
    return Canned(evidence=evidence)


class ScriptedJudge:
    """The server. ``replies`` is used up in order, or asked each time; where it has nothing to say, the rules answer."""

    def __init__(
        self,
        replies: Script = (),
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        key: str = "",
        formats: frozenset[str] = frozenset({"json_schema", "json_object"}),
        format_refusal: int = 400,
        refuses: frozenset[str] = frozenset(),
    ) -> None:
        """Take which forms of reply it knows, ``json_object_schema`` among them, and which other parameters it refuses by name."""
        self._script: Callable[[Asked], Canned | None] = replies if callable(replies) else _in_order(iter(replies))
        self._host = host
        self._port = port
        self._key = key
        self._formats = formats
        self._format_refusal = format_refusal
        self._refuses = refuses
        self._closing = asyncio.Event()
        self.asked: list[Asked] = []
        """Every request, in order of arrival."""
        self.url = ""
        """What to write as ``base_url``, once it is serving."""

    async def __aenter__(self) -> Self:
        """Serve until the end of the block."""
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        self._runner = web.AppRunner(app, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()
        self.url = f"http://{self._host}:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of those who are kept waiting, and stop."""
        self._closing.set()
        await self._runner.cleanup()

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "tracegrade"}]})

    async def _complete(self, request: web.Request) -> web.Response:
        body = await request.json()
        asked = Asked(body, request.headers.get("Authorization", ""), SeenPrompt.of(body.get("messages", [])))
        self.asked.append(asked)
        if self._key and asked.authorization != f"Bearer {self._key}":
            return _respond(failing(401, message=f"Incorrect API key provided: {asked.authorization}"))
        if refusal := self._refusal(body):
            return _respond(refusal)
        canned = self._script(asked) or Canned()
        if canned.hang:
            await self._closing.wait()
            return _respond(failing(503, message="closing"))
        if canned.delay_s:
            await asyncio.sleep(canned.delay_s)
        if canned.body is not None:
            return _respond(canned)
        return web.json_response(_completion(body, _content(asked, canned), canned), status=canned.status, headers=canned.headers)

    def _refusal(self, body: Mapping[str, Any]) -> Canned | None:
        asked = body.get("response_format", {})
        form = f"{asked.get('type')}_schema" if "schema" in asked else asked.get("type")
        if form is not None and form not in self._formats:
            return failing(self._format_refusal, message=f"response_format {form} is not supported")
        refused = sorted(self._refuses & body.keys())
        return failing(400, message=f"Unsupported parameter: {refused[0]}") if refused else None


def _in_order(replies: Iterator[Canned]) -> Callable[[Asked], Canned | None]:
    return lambda _: next(replies, None)


def _content(asked: Asked, canned: Canned) -> str:
    if canned.text is not None:
        return canned.text
    pair = SeenPair.of(asked.body.get("messages", []))
    if asked.seen is not None:
        said = decision(asked.seen) if asked.seen.passed_or_failed else verdict(asked.seen)
    elif pair is not None:
        said = preference(pair)
    else:
        return "I grade replies on one dimension, and this is no such question."
    if canned.evidence is not None:
        said["evidence"] = canned.evidence
    return msgspec.json.encode(said).decode()


def _completion(body: Mapping[str, Any], content: str, canned: Canned) -> dict[str, Any]:
    # Tokens are counted as characters / 4: any count will do, as long as it is the same each time.
    given = sum(len(str(message.get("content", ""))) for message in body.get("messages", [])) // 4
    taken = len(content) // 4
    completion: dict[str, Any] = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "system_fingerprint": "scripted-rules-1",
        "choices": [{"index": 0, "finish_reason": canned.finish_reason, "message": {"role": "assistant", "content": content}}],
    }
    if canned.usage:
        completion["usage"] = {"prompt_tokens": given, "completion_tokens": taken, "total_tokens": given + taken}
    return completion


def _respond(canned: Canned) -> web.Response:
    return web.Response(text=canned.body, status=canned.status, headers=canned.headers, content_type=canned.content_type)


async def serve_forever(port: int, host: str = "127.0.0.1") -> int:
    """Say where the scripted judge listens, and serve until it is told to stop."""
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    async with ScriptedJudge(host=host, port=port) as judge:
        sys.stdout.write(f"scripted judge, no judge of quality: base_url {judge.url}, model {MODEL}\n")
        sys.stdout.flush()
        await told.wait()
    return 0


def main() -> None:
    """Serve the scripted judge until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.judges.scripted", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    port = parser.parse_args().port
    try:
        asyncio.run(serve_forever(port))
    except KeyboardInterrupt:
        sys.stdout.write("\n")


if __name__ == "__main__":
    main()
