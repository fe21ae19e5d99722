"""Kinds: traffic of which it is known beforehand in which class of the accounting each run ends, whatever happens meanwhile.

A judge that is part of it answers by the order that a run is about: well, with rubbish, with Unknown, with an error first, or not at all.
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from threading import Lock
from typing import Any, Final

import msgspec
from faults.accounts import Class
from faults.ledger import HEAD, Sent, request, span_id
from faults.load import WHOLE

from pipeline.judges.scripted import Asked, Canned, failing, hanging, malformed
from pipeline.model.ids import digest, uniform
from pipeline.model.time import SECOND

RATE: Final = 0.7
PLAIN, PRIVATE, POOR = "plain", "private", "poor"
"""Projects: an ordinary one, one that no judge is shown, one whose budget pays for no call."""
PROJECTS: Final = (PLAIN, PRIVATE, POOR)
LEAD: Final = 9
"""Number of the span of an agent above the head, which comes late."""
TROUBLED: Final = "tone"
"""The dimension that the judge has its troubles with; it answers all others, so that nothing waits for one run."""
ONE_DIMENSION: Final = """
name: tone-alone
version: "1"
scale: {lowest: 1, highest: 5}
bar: 50
dimensions:
  - name: tone
    weight: 1
    requires: [the reply]
    anchors: {1: rude, 3: dry, 5: kind}
    examples:
      - {kind: clear_pass, evidence: Where is it?, answer: "Happy to help: it is on its way.", score: 5, why: It is kind.}
      - {kind: clear_failure, evidence: Where is it?, answer: Look yourself., score: 1, why: It is rude.}
      - {kind: borderline, evidence: Where is it?, answer: On its way., score: 3, why: It is dry.}
"""
"""A rubric that asks one question of a run, where there is little time."""
ASKED_AGAIN: Final = 2
"""How often a question is answered, at most: once more where the first reply could not be read."""
LONG: Final = 9000
"""Characters of an answer that fits no transcript."""
CONFIG: Final = """
assemble: {{quiet_period: 500ms, parent_unseen: 1s, idle_timeout: 3s}}
judge:
  base_url: "{judge}"
  model: scripted-judge-1
  timeout: 1s
  deadline: {deadline}
  transcript_budget: 6000
  price: {{input_per_million: 1, output_per_million: 1}}
  budget: {{projects: {{poor: 0.0001}}}}
  opted_out: [private]
agents: {{default: {{rubric: {rubric}, sampling: {{rate: {rate}}}}}}}
"""
UNSAMPLED: Final[set[Class]] = {("unsampled", "")}
_JUDGED: Final = ("judged", "")
_EXPIRED: Final = ("unresolved", "expired")
"""What a judge that is asked in vain for too long leaves, on a machine that has much else to do any judge."""


class Kind(StrEnum):
    """What is the matter with a run. The order that it is about begins with the word."""

    WELL = "well"
    LATE = "late"
    """A tool call comes when the run is closed."""
    MOVED = "moved"
    """The head comes again, with an end in another minute."""
    MERGED = "merged"
    """An agent above it comes when it is closed."""
    SLOW = "slow"
    """The judge fails at first."""
    INCOMPLETE = "incomplete"
    LONG = "long"
    RUBBISH = "rubbish"
    UNKNOWN = "unknown"
    SILENT = "silent"
    """The judge never answers."""
    PRIVATE = "private"
    POOR = "poor"


_ENDS: Final[Mapping[Kind, set[Class]]] = {
    Kind.INCOMPLETE: {("unresolved", "incomplete")},
    Kind.LONG: {("unresolved", "too_long")},
    Kind.RUBBISH: {("unresolved", "grader_error"), _EXPIRED},
    Kind.UNKNOWN: {("unresolved", "insufficient_evidence"), _EXPIRED},
    Kind.SILENT: {_EXPIRED},
    Kind.PRIVATE: {("unresolved", "opted_out"), _EXPIRED},
    Kind.POOR: {("unresolved", "budget"), _EXPIRED},
}
"""The class in the end, where it is not judged."""


class Trace(msgspec.Struct, frozen=True):
    """A trace of a kind."""

    kind: Kind
    sent: Sent

    @property
    def project(self) -> str:
        """The project whose key it is sent with."""
        return self.kind.value if self.kind in (Kind.PRIVATE, Kind.POOR) else PLAIN

    @property
    def ends(self) -> set[Class]:
        """The classes that its run may be in, in the end."""
        if uniform(self.project, self.sent.trace_id, "1") >= RATE:
            return UNSAMPLED
        return _ENDS.get(self.kind, {_JUDGED, _EXPIRED})

    @property
    def certain(self) -> set[Class]:
        """The same but for what only a machine that has too much else to do would leave."""
        return self.ends if self.kind is Kind.SILENT else self.ends - {_EXPIRED}

    def requests(self) -> Iterator[dict[str, Any]]:
        """Yield what is sent at once, and what is sent when the run is closed."""
        match self.kind:
            case Kind.INCOMPLETE:
                yield request(self.sent, (HEAD, 2))
            case Kind.LONG:
                yield _with_text(request(self.sent, WHOLE), "refunded: ", f"refunded: {'x' * LONG} ")
            case Kind.LATE:
                yield request(self.sent, WHOLE)
                yield request(self.sent, (4,))
            case Kind.MOVED:
                yield request(self.sent, WHOLE)
                later = msgspec.structs.replace(self.sent, ended_ns=self.sent.ended_ns + 70 * SECOND)
                yield request(later, (HEAD,))
            case Kind.MERGED:
                yield _under(request(self.sent, WHOLE), LEAD)
                yield _named(request(self.sent, (HEAD,)), LEAD)
            case _:
                yield request(self.sent, WHOLE)


def _with_text(made: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(made).replace(old, new))
    return changed


def _spans(made: dict[str, Any]) -> Sequence[dict[str, Any]]:
    found: Sequence[dict[str, Any]] = made["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return found


def _under(made: dict[str, Any], parent: int) -> dict[str, Any]:
    """The head has a parent, which nobody has seen yet."""
    for span in _spans(made):
        span["parentSpanId"] = span["parentSpanId"] or span_id(parent)
    return made


def _named(made: dict[str, Any], number: int) -> dict[str, Any]:
    """The head under another number: the agent above."""
    for span in _spans(made):
        span["spanId"] = span_id(number)
    return made


class Traffic:
    """Makes traces of all kinds in turn, and remembers them; those of every second turn are not sampled."""

    def __init__(self, kinds: Sequence[Kind] = tuple(Kind), *, sampled_first: bool = True) -> None:
        self.traces: list[Trace] = []
        self._kinds, self._turn, self._first = itertools.cycle(kinds), len(kinds), sampled_first

    def next(self, now: int) -> Trace:
        """Make the next trace, which ends now."""
        kind, number = next(self._kinds), len(self.traces)
        sampled = (number // self._turn % 2 == 0) is self._first
        some = (
            Trace(kind, Sent(digest(16, f"{number}", f"{one}"), f"agent-{number % 2}", f"{kind}-{number}", False, ended_ns=now))
            for one in itertools.count()
        )
        made = next(one for one in some if (one.ends != UNSAMPLED) is sampled)
        self.traces.append(made)
        return made


class JudgeOfKinds:
    """Answers by the kind of the run that it is asked about; five of five where nothing is the matter."""

    def __init__(self) -> None:
        self.answered: Counter[str] = Counter()
        """How often each question was answered, whatever the answer."""
        self._failed: set[str] = set()
        self._lock = Lock()

    def __call__(self, asked: Asked) -> Canned:
        """Return what to say; who asks is a process of the product."""
        assert asked.seen is not None, "this is no prompt of the product's"
        kind = next(kind for kind in Kind if f"{kind}-" in asked.seen.request)
        troubled = asked.seen.dimension == TROUBLED
        question = f"{asked.seen} {asked.body.get('seed')}"
        if troubled and kind is Kind.SILENT:
            return hanging()
        if troubled and kind is Kind.SLOW and self._is_new(question):
            return failing(503)
        with self._lock:
            self.answered[question] += 1
        if troubled and kind is Kind.RUBBISH:
            return malformed()
        score, quote = ("Unknown", "") if troubled and kind is Kind.UNKNOWN else (5, "42.50 USD")
        return Canned(text=json.dumps({"score": score, "reason": "As scripted.", "evidence": quote}))

    def _is_new(self, question: str) -> bool:
        with self._lock:
            new = question not in self._failed
            self._failed.add(question)
            return new
