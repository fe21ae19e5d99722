"""Run: one trajectory of one agent, put together from the steps of a trace."""

from enum import StrEnum
from typing import NamedTuple

import msgspec

from pipeline.model import ids
from pipeline.model.spending import Billed, HandOff
from pipeline.model.step import Message, Step, ToolCall, ToolDefinition, Usage

UNKNOWN = "unknown"
"""What a cohort's part is called when no span says it: a value, not a drop."""
BACKFILL = "backfill"
"""The environment of replayed history, which gates ignore and the event-time clamp does not touch."""


class Cohort(msgspec.Struct, frozen=True, order=True):
    """What is compared with itself over time: (agent, version, environment)."""

    agent: str = UNKNOWN
    version: str = UNKNOWN
    environment: str = UNKNOWN

    @property
    def id(self) -> str:
        """The cohort's id, 16 hex digits."""
        return ids.cohort_id(self.agent, self.version, self.environment)


class Place(msgspec.Struct, frozen=True, order=True):
    """Where a run counts: a cohort and a minute (ns, start of the UTC minute)."""

    cohort: Cohort
    minute_ns: int


class RunAddress(NamedTuple):
    """Where a run is found: its trace, and its name in it."""

    trace_id: str
    run_id: str


class CloseReason(StrEnum):
    """Why no more spans were awaited. Not part of what a version says (promise 4)."""

    HEAD_ENDED = "head_ended"
    PARENT_UNSEEN = "parent_unseen"
    IDLE = "idle"
    GREATEST_AGE = "greatest_age"


class Ended(StrEnum):
    """How a run ended, as far as its spans tell."""

    ANSWER = "answer"
    ERROR = "error"
    LIMIT = "limit"
    """It was ended: by its framework after so many rounds, or by the model's greatest length in the middle of its last reply."""
    SILENCE = "silence"


class Trouble(StrEnum):
    """What the error texts of a run tell. A weak sign: nobody measured it."""

    NONE = "none"
    """There are none."""
    ERROR = "error"
    ALARM = "alarm"
    """One of them is of something forbidden or unsafe."""


class RunClass(StrEnum):
    """The one class of a run in the accounting (spec section 1)."""

    UNSAMPLED = "unsampled"
    PENDING = "pending"
    UNRESOLVED = "unresolved"
    JUDGED = "judged"


class Part(msgspec.Struct, frozen=True):
    """What one agent did in a run. ``path`` is its address in it: empty for the run's own agent, else names from there on down.

    ``researcher/critic`` is the critic that the researcher called or handed over to; a ``/`` in a name is written ``%2F``. An agent that is
    called again at the same place is the same part.
    """

    path: str
    agent: str
    steps: int
    model_calls: int
    tool_calls: int
    failed_calls: int
    """Calls that failed, or that were asked for and never executed."""
    usage: Usage


class Run(msgspec.Struct, frozen=True):
    """One run of one agent. A function of the trace's stored spans and of nothing else."""

    project: str
    trace_id: str
    run_id: str
    head_span_id: str
    place: Place
    start_ns: int
    end_ns: int
    """Event time of the head's end, clamped to the receive time −7 d … +5 min; what decides the minute."""
    first_received_ns: int
    steps: tuple[Step, ...]
    """By start, parents before children; sub-agents and their steps included."""
    agents: tuple[str, ...] = ()
    """Agents below the head, in order of their first step."""
    parts: tuple[Part, ...] = ()
    """The run's own agent and its sub-agents, in order of their first step: each step, call and token of the run is in one of them."""
    conversation_id: str = ""
    system: str = ""
    """System instructions, as far as captured."""
    request: str = ""
    """What the user asked in this run; the last user message before the first answer where history is replayed."""
    answer: str | None = None
    """The final answer; None where the run gave none or none was captured."""
    messages: tuple[Message, ...] = ()
    """The conversation up to the first answer of this run, as the first model call was given it."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Executed calls in order; calls that a model asked for and that no span executed come with ``error`` = ``not executed``."""
    tools: tuple[ToolDefinition, ...] = ()
    models: tuple[str, ...] = ()
    model_calls: int = 0
    """Each attempt is one, also where a refused one was made again."""
    retries: int = 0
    """Model calls that only made a failed one again: ``model_calls`` without them is how many operations there were (reliability R100)."""
    usage: Usage = Usage()
    """Sums of what is known; where some call does not say, the run has the flag ``usage_incomplete`` and they are too small."""
    billed: tuple[Billed, ...] = ()
    """What ``usage`` is the sum of, in order: every model call that counts, and totals of agents whose calls do not say."""
    hand_offs: tuple[HandOff, ...] = ()
    """In order. An agent that was called and returned is none."""
    task_kind: str = ""
    """What kind of task it was: a configured attribute, else the agent's name (spec section 4.2)."""
    ended: Ended = Ended.SILENCE
    error: str | None = None
    """Why it ended in an error or at a limit."""
    dialects: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def completed(self) -> bool:
        """Whether the run gave a final answer (spec section 1): only such runs are judged."""
        return bool(self.answer and self.answer.strip())
