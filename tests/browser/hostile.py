"""What an attacker writes wherever something can be written: into a run, into what people and judges say of it, into an address."""

import json
import urllib.request
from typing import Final

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from serving import Up, http_exporter

CANARY: Final = "canary.invalid"
"""A host that no page may ask for."""
ATTACKS: Final = (
    "<script>owned('script')</script>",
    "<img src=x onerror=owned('img')>",
    f"<img src=http://{CANARY}/image>",
    "<svg/onload=owned('svg')>",
    f"<iframe src=http://{CANARY}/frame></iframe>",
    f"<link rel=stylesheet href=http://{CANARY}/style>",
    f"<style>@import url(http://{CANARY}/import);*{{display:none}}</style>",
    f'<meta http-equiv=refresh content="0;url=http://{CANARY}/meta">',
    f"<base href=http://{CANARY}/>",
    f"<form action=http://{CANARY}/form><button autofocus>go</button></form>",
    "\" autofocus onfocus=owned('double') x=\"",
    "' autofocus onfocus=owned('single') x='",
    "` onfocus=owned('grave') `",
    "</pre></td></table></details></textarea></title></style></script><script>owned('closing')</script>",
    "<!-- ]]> --!> <![CDATA[ <?php ?>",
    "javascript:owned('address')",
    "data:text/html,<script>owned('data')</script>",
    "[markdown](javascript:owned('markdown'))",
    "&lt;script&gt; &#x3c;script&#x3e; &amp;amp;",
    "{{ 7 * 7 }} {% for a in b %} {# c #} ${7*7} #{7*7} <%= 7*7 %>",
    "'; DROP TABLE runs; -- \\' {project:String} %s %(x)s",
    "../../../etc/passwd%00 %2e%2e%2f C:\\x #fragment ?a=b&c=d",
)
"""Each stands literally on the page, or not at all."""
ACTING: Final = "\u202egnisrever\u2066\u2069 nul\x00nul \x1b[2J\x1b]0;owned\x07 \u2028\u2029 \ufeff \U000e0041\U000e0042"
"""What acts on a reader; it stands there as escapes."""
WRITTEN: Final = (
    r"\u202egnisrever\u2066\u2069",
    r"nul\u0000nul",
    r"\u001b[2J\u001b]0;owned\u0007",
    r"\u2028\u2029",
    r"\ufeff",
    r"\udb40\udc41\udb40\udc42",
)
"""How that is written."""
EVERYTHING: Final = " ".join((*ATTACKS, ACTING))
MEGABYTE: Final = "W" * (1 << 20)
NAME: Final = f"{ATTACKS[0]} {ATTACKS[10]} {ACTING[:12]}"
"""What fits a name."""


def a_hostile_run(up: Up, agent: str = NAME, key: str = "", conversation: str = NAME) -> str:
    """Send a run that has all of it in every place. Returns the trace id."""
    resource = {
        "service.name": EVERYTHING,
        "service.version": EVERYTHING,
        "deployment.environment.name": NAME,
        EVERYTHING[:200]: EVERYTHING,
    }
    provider = TracerProvider(resource=Resource.create(resource))
    provider.add_span_processor(SimpleSpanProcessor(http_exporter(up, key)))
    tracer = provider.get_tracer(NAME)
    called = {"id": EVERYTHING, EVERYTHING: [EVERYTHING, {"half": "HALF"}], "long": MEGABYTE}
    arguments = json.dumps(called).replace("HALF", r"\ud83d and \u0000")
    asked = [{"role": "user", "parts": [{"type": "text", "content": f"Please: {EVERYTHING}"}]}]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": f"It is done. {EVERYTHING}"}]}]
    head = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        "gen_ai.agent.version": NAME,
        "gen_ai.conversation.id": conversation,
        EVERYTHING[:300]: EVERYTHING,
    }
    with tracer.start_as_current_span(EVERYTHING, attributes=head) as top:
        for error in ("", EVERYTHING):
            tool = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": NAME,
                "gen_ai.tool.call.id": EVERYTHING,
                "gen_ai.tool.call.arguments": arguments,
                "gen_ai.tool.call.result": f"{EVERYTHING} {MEGABYTE}",
            }
            with tracer.start_as_current_span(EVERYTHING, attributes=tool) as span:
                if error:
                    span.set_status(trace.StatusCode.ERROR, error)
                    span.add_event(
                        EVERYTHING, {"exception.type": NAME, "exception.message": error, "exception.stacktrace": error}
                    )
        model = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": NAME,
            "gen_ai.input.messages": json.dumps(asked),
            "gen_ai.output.messages": json.dumps(said),
        }
        with tracer.start_as_current_span(EVERYTHING, attributes=model):
            pass
    provider.shutdown()
    return f"{top.get_span_context().trace_id:032x}"


def hostile_feedback(up: Up, run_id: str, key: str = "") -> None:
    """Say something of a run, as hostile."""
    said = {"run_id": run_id, "value": -1, "author": NAME, "comment": f"{EVERYTHING} {MEGABYTE[:7_000]}"}
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    request = urllib.request.Request(f"{up.http}/api/feedback", json.dumps(said).encode(), headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        assert answer.status < 300
