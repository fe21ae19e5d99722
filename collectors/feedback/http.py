"""``POST /api/feedback``: a route beside those of the receiver, with its keys, limits and refusals."""

from typing import Any, Final

import msgspec
from aiohttp import web

from collectors.feedback.desk import FeedbackDesk
from collectors.otlp.http import body_of, refusal
from collectors.otlp.receiver import Receiver
from collectors.otlp.signal import Encoding
from pipeline.config.receiver import MEBIBYTE
from pipeline.errors import PermanentError, TemporaryError

PATH: Final = "/api/feedback"
MAX_BODY: Final = MEBIBYTE
KEY: Final = "Idempotency-Key"


def routes(receiver: Receiver, desk: FeedbackDesk) -> list[web.RouteDef]:
    """Return the route. The caller's key decides whose runs the feedback is about."""

    async def post(request: web.Request) -> web.Response:
        if request.content_type.lower() != Encoding.JSON:
            raise web.HTTPUnsupportedMediaType(text=f"Content-Type must be {Encoding.JSON}\n")
        try:
            async with receiver.request(request.headers.get("Authorization"), request.content_length or 0) as admitted:
                body = await body_of(request, receiver, admitted, MAX_BODY)
                taken = await desk.take(body, admitted.project, request.headers.get(KEY, ""))
        except (PermanentError, TemporaryError) as error:
            return refusal(error, Encoding.JSON)
        stored = [{"id": one.id, "trace_id": one.trace_id, "run_id": one.run_id, "value": one.value} for one in taken]
        return _json({"accepted": len(stored), "feedback": stored})

    return [web.post(PATH, post)]


def _json(body: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), content_type=Encoding.JSON)
