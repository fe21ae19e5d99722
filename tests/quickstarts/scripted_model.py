"""A model that says what a script says, behind an OpenAI-compatible endpoint: chat completions and responses, whole and streamed.

Which script is said by the API key, so that any program that reads ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY`` can be played to.
"""

import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

MODEL: Final = "scripted"
FINAL_ANSWER: Final = "final_answer"
"""A tool by which some frameworks want to be told the answer."""


class Ask(NamedTuple):
    """A call that the model asks for."""

    tool: str
    arguments: Mapping[str, Any]


Turn = str | tuple[Ask, ...]
"""What the model says when it is asked: text, or calls."""


class Usage(NamedTuple):
    """Tokens of one request; no two requests of a run have the same, so that none can stand for another."""

    input: int
    output: int
    cached: int = 20
    reasoning: int = 5


class Served(NamedTuple):
    """What was asked of the model, and what it said."""

    request: Mapping[str, Any]
    turn: Turn
    usage: Usage


class ScriptedModel:
    """The server, once it is serving: scripts by API key, and everything that was served, by the same key."""

    def __init__(self, url: str, scripts: Mapping[str, Sequence[Turn]]) -> None:
        self.url = url
        self.served: dict[str, list[Served]] = defaultdict(list)
        self._scripts = scripts

    def say(self, key: str, request: Mapping[str, Any]) -> Served:
        """Say the next line of a script; an answer goes through the tool for answers, where the model was offered one."""
        number = len(self.served[key])
        turn = self._scripts[key][number]
        offered = {tool.get("function", tool).get("name") for tool in request.get("tools") or ()}
        if isinstance(turn, str) and FINAL_ANSWER in offered:
            turn = (Ask(FINAL_ANSWER, {"answer": turn}),)
        said = Served(request, turn, Usage(101 + number, 31 + number))
        self.served[key].append(said)
        return said


@contextmanager
def a_scripted_model(scripts: Mapping[str, Sequence[Turn]]) -> Iterator[ScriptedModel]:
    """Serve while the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said = model.say(self.headers["Authorization"].removeprefix("Bearer "), request)
            if self.path == "/v1/responses":
                events = _response_events(said)
                whole = events[-1]["response"]
            else:
                events, whole = _chunks(said), _completion(said)
            if request.get("stream"):
                self._send("text/event-stream", "".join(map(_event, events)) + "data: [DONE]\n\n")
            else:
                self._send("application/json", json.dumps(whole))

        def _send(self, content_type: str, text: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        model = ScriptedModel(f"http://127.0.0.1:{server.server_port}/v1", scripts)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()


def _event(data: Mapping[str, Any]) -> str:
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n"


def _calls(turn: Turn, number: int) -> list[dict[str, Any]]:
    asks = () if isinstance(turn, str) else turn
    return [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": ask.tool, "arguments": json.dumps(ask.arguments)},
        }
        for place, ask in enumerate(asks)
    ]


def _completion(said: Served) -> dict[str, Any]:
    calls = _calls(said.turn, said.usage.input)
    message = {"role": "assistant", "content": said.turn if isinstance(said.turn, str) else None}
    choice = {
        "index": 0,
        "finish_reason": "tool_calls" if calls else "stop",
        "message": {**message, "tool_calls": calls} if calls else message,
    }
    return {"object": "chat.completion", **_head(said), "choices": [choice], "usage": _completion_usage(said.usage)}


def _chunks(said: Served) -> list[dict[str, Any]]:
    calls = _calls(said.turn, said.usage.input)
    text = said.turn if isinstance(said.turn, str) else ""
    half = len(text) // 2
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": text[:half]}]
    deltas += [{"content": text[half:]}] if text else []
    deltas += [{"tool_calls": [{"index": place, **call}]} for place, call in enumerate(calls)]
    head = {"object": "chat.completion.chunk", **_head(said)}
    chunks: list[dict[str, Any]] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    reason = "tool_calls" if calls else "stop"
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    if (said.request.get("stream_options") or {}).get("include_usage"):  # as the hosted API does: only where it was asked for
        chunks.append({**head, "choices": [], "usage": _completion_usage(said.usage)})
    return chunks


def _head(said: Served) -> dict[str, Any]:
    return {"id": f"chatcmpl-{said.usage.input}", "created": 0, "model": said.request.get("model", MODEL)}


def _completion_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _response_events(said: Served) -> list[dict[str, Any]]:
    usage = said.usage
    head = {
        "id": f"resp_{usage.input}",
        "object": "response",
        "created_at": 0,
        "model": said.request.get("model", MODEL),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": said.request.get("tools") or [],
    }
    counted = {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
    items = _items(said)
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**head, "status": "in_progress", "output": []}},
        *(event for place, item in enumerate(items) for event in _item_events(place, item)),
        {"type": "response.completed", "response": {**head, "status": "completed", "output": items, "usage": counted}},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _items(said: Served) -> list[dict[str, Any]]:
    number = said.usage.input
    if isinstance(said.turn, str):
        content = [{"type": "output_text", "text": said.turn, "annotations": []}]
        return [{"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}]
    return [
        {"type": "function_call", "id": f"fc_{call['id']}", "call_id": call["id"], "status": "completed", **call["function"]}
        for call in _calls(said.turn, number)
    ]


def _item_events(place: int, item: Mapping[str, Any]) -> list[dict[str, Any]]:
    at = {"output_index": place, "item_id": item["id"]}
    if item["type"] == "function_call":
        begun: dict[str, Any] = {**item, "arguments": "", "status": "in_progress"}
        between = [
            {"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]},
            {"type": "response.function_call_arguments.done", **at, "name": item["name"], "arguments": item["arguments"]},
        ]
    else:
        begun = {**item, "content": [], "status": "in_progress"}
        (part,) = item["content"]
        at["content_index"] = 0
        between = [
            {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
            {"type": "response.output_text.delta", **at, "delta": part["text"], "logprobs": []},
            {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []},
            {"type": "response.content_part.done", **at, "part": part},
        ]
    return [
        {"type": "response.output_item.added", "output_index": place, "item": begun},
        *between,
        {"type": "response.output_item.done", "output_index": place, "item": item},
    ]
