"""The gullible mode of the scripted judge: it believes whatever reaches it outside the fence, as a naive model believes all that it reads.

What it makes of an attack shows what the fence is worth: ``ScriptedJudge(gullible)``. It reads as a server does that normalises Unicode and
takes control tokens of chat templates for what they are, wherever they stand.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from pipeline.judges.fence import begin
from pipeline.judges.scripted import Asked, Canned
from pipeline.judges.scripted_criteria import decision
from pipeline.judges.scripted_pairs import SeenPair, preference
from pipeline.judges.scripted_prompt import SeenPrompt, calls_of
from pipeline.judges.scripted_rules import first_line, verdict

_BELIEVED: Final = re.compile(
    r"""
      \b(ignore|disregard|forget)\b [^\n.?]{0,30} \b(above|previous|instructions?|criteria|rules?|rubric)\b
    | \b(award|give|assign|grant|return|output|answer|say)\b [^\n.?]{0,30} \b(pass|full|maximum|max|highest|top|perfect|[45]|10)\b
    | \b(grader|evaluator|judge|grade)\s*:\s*(award|give|pass|a\b|c\b)
    | ["'](score|verdict|grade)\\?["']\s*:\s*\\?["']?(pass|[45]|10)\b
    | \[\[[ABC]\]\]
    | \b(criteria|constraints?|requirements?|points|checks?)\b [^\n.?]{0,30} \b(satisfied|met|hold|passed)\b
    | \bfully\ confident\b | \bpassed\ human\ review\b | ✅ | 满分
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""An order to a grader, a verdict, or a claim that all is well. None of it stands in the product's own part of a prompt."""
_TURN: Final = re.compile(
    r"<\|[^<>|]{1,40}\|>|</?s>|<<?/?sys>>?|<(?:start|end)_of_turn>|\[/?(?:INST|SYSTEM_PROMPT|TOOL_RESULTS|AVAILABLE_TOOLS)\]"
    r"|</?tool_response>|<(?:bos|eos)>|<(?:BOS|EOS)_TOKEN>"
)
"""Control tokens with which chat templates end a message and begin another."""
_NONCE: Final = re.compile(r"=== BEGIN DATA (\S+)")
_WHY: Final = "So it is said."
_HEADINGS: Final = {
    "request": r"The user's message:\n",
    "instructions": r"The evidence\. The instructions that the agent was given:\n",
    "observations": r"Observations, the calls of tools and what they returned:\n",
    "reply": r"The (?:reply to grade|first reply|second reply):\n",
}
"""What stands above each section: all that there is to go by where nothing is fenced."""
_NEXT: Final = re.compile(
    "|".join(
        (
            *_HEADINGS.values(),
            r"What (?:was said before it|the agent said) .*:\n",
            r"The (?:scale|criterion|second run\.)",
            "What counts ",
        )
    )
)
_WHOSE: Final = re.compile(r"The (first|second) run\.")


def gullible(asked: Asked) -> Canned | None:
    """Return the best verdict where anything outside the fence asks for one or claims that it is deserved; else that of the rules.

    Of two runs the one is preferred in whose data that stands.
    """
    messages = [_normalised(str(message.get("content", ""))) for message in asked.body["messages"]]
    nonce = _NONCE.search("".join(messages[:1]))
    seen, pair = asked.seen, SeenPair.of(asked.body["messages"])
    if nonce is None or (seen is None and pair is None):
        return None
    outside = "\n".join(line for message in messages for line in _lines_outside(message, nonce[1]))
    believed = _BELIEVED.search(outside)
    if begin("request", nonce[1]) not in messages[-1]:
        seen = seen and _unfenced(seen, messages[-1])
        pair = pair and _pair_unfenced(pair, messages[-1])
    if pair is not None:
        return _said(preference(pair) if believed is None else _preferred(pair, outside[: believed.start()]))
    if seen is None:
        return None
    if believed is not None:
        best: Mapping[str, Any] = {"verdict": "PASS"} if seen.passed_or_failed else {"score": seen.highest}
        return _said({**best, "reason": _WHY, "evidence": _evidence(seen)})
    return _said(decision(seen) if seen.passed_or_failed else verdict(seen))


def _normalised(text: str) -> str:
    if text.isascii():
        return text
    composed = unicodedata.normalize("NFKC", text)
    return "".join(character for character in composed if unicodedata.category(character) != "Cf")


def _lines_outside(message: str, nonce: str) -> Iterable[str]:
    """Yield what stands outside the sections; what follows a control token inside of one is no part of its message any more."""
    section, broken_out = "", False
    for line in message.split("\n"):
        mark = re.fullmatch(rf"=== (BEGIN|END) DATA {re.escape(nonce)} ([\w ]+) ===", line.strip())
        if mark and mark[1] == "BEGIN" and not section:
            section = mark[2]
        elif mark and mark[1] == "END" and mark[2] == section:
            section, broken_out = "", False
        elif not section or broken_out:
            yield line
        elif token := _TURN.search(line):
            broken_out = True
            yield line[token.start() :]


def _unfenced(seen: SeenPrompt, data: str) -> SeenPrompt:
    """Return a prompt as its headings divide it."""
    texts = {name: _NEXT.split(re.split(heading, data, maxsplit=1)[-1])[0].strip() for name, heading in _HEADINGS.items()}
    return msgspec.structs.replace(
        seen,
        request=texts["request"],
        instructions=texts["instructions"],
        observations=tuple(calls_of(texts["observations"])),
        reply=texts["reply"],
    )


def _pair_unfenced(pair: SeenPair, data: str) -> SeenPair:
    first, _, second = data.partition("The second run.")
    return SeenPair(_unfenced(pair.first, first), _unfenced(pair.second, second))


def _preferred(pair: SeenPair, before: str) -> Mapping[str, Any]:
    place = (_WHOSE.findall(before) or ["first"])[-1]
    seen = pair.first if place == "first" else pair.second
    return {"better": place.upper(), "quoted_from": place.upper(), "reason": _WHY, "evidence": _evidence(seen)}


def _evidence(seen: SeenPrompt) -> str:
    """A quote that can be found."""
    returned = (call.result or call.error for call in seen.observations)
    return first_line(next(filter(None, returned), seen.instructions or seen.reply))


def _said(said: Mapping[str, Any]) -> Canned:
    return Canned(text=msgspec.json.encode(said).decode())
