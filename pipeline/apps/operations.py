"""Operations: the whole HTTP API as one table. ``/api/openapi.json`` is made of it, and a test holds the server's routes to it."""

from typing import Any, Final

import msgspec

from collectors.feedback.said import Said
from collectors.otlp.signal import Encoding
from pipeline.apps.health import Finding
from pipeline.apps.pages.runs_query import FIELDS
from pipeline.apps.window_lines import WindowLine
from pipeline.model.comparison import Comparison
from pipeline.model.conversation import Conversation, ConversationDetail
from pipeline.model.evaluation import Evaluation
from pipeline.model.golden import GoldenCase
from pipeline.model.log_record import LogRecord
from pipeline.model.span import Span
from pipeline.model.verdict import StructuredVerdict
from pipeline.runtime.evaluations import EvaluationLine, Policy
from pipeline.stages.reevaluate import Reevaluation
from pipeline.stages.verify import Verification
from sinks.clickhouse.board import Accounting, BoardRow
from sinks.clickhouse.judge_calls import DayCost
from sinks.clickhouse.run_detail import RunDetail

JSON: Final = "application/json"
HTML: Final = "text/html"
TEXT: Final = "text/plain"
BAD: Final = 400
"""Status of what cannot be done as it is asked for."""


class Scoreboard(msgspec.Struct, frozen=True):
    """The latest runs, and what became of all of them."""

    runs: list[BoardRow]
    accounting: Accounting


class Facts(msgspec.Struct, frozen=True):
    """What is stored of a run's trace."""

    spans: list[Span]
    log_records: list[LogRecord]


class Readiness(msgspec.Struct, frozen=True):
    """Whether the process can work, and what it looked at."""

    ready: bool
    checks: dict[str, Finding]


class AcceptedFeedback(msgspec.Struct, frozen=True):
    """One feedback as it is stored."""

    id: str
    trace_id: str
    run_id: str
    value: float


class FeedbackAnswer(msgspec.Struct, frozen=True):
    """What was accepted."""

    accepted: int
    feedback: list[AcceptedFeedback]


class Refusal(msgspec.Struct, frozen=True):
    """Why not, in a sentence that says what to do."""

    error: str


class Status(msgspec.Struct, frozen=True):
    """Why not, as OTLP says it: ``google.rpc.Status``."""

    code: int
    message: str


class Parameter(msgspec.Struct, frozen=True):
    """A part of the path, or of the query."""

    name: str
    description: str
    type: Any = str
    required: bool = False


class Operation(msgspec.Struct, frozen=True):
    """What one method of one path does. ``answer`` is the type behind the JSON; None for what is no JSON of this product's."""

    summary: str
    answer: Any = None
    parameters: tuple[Parameter, ...] = ()
    media: tuple[str, ...] = (JSON,)
    body: Any = None
    refusals: tuple[int, ...] = (400, 401, 503)
    refusal: Any = Refusal
    """The type behind the JSON of a refusal; None for what is none."""

    @property
    def strict(self) -> bool:
        """Whether a parameter that is not among its own is refused: probes and browsers add theirs, and senders read OTLP's errors."""
        return BAD in self.refusals and self.refusal is not Status


def _limit(default: int) -> Parameter:
    return Parameter("limit", f"How many, the last ones; {default} where nothing is written.", int)


def _of_run(name: str = "prefix") -> Parameter:
    return Parameter(
        name, "The run's id, or as much of its beginning as is unique; or the id of a trace with one run.", required=True
    )


_AGENT: Final = Parameter("agent", "Only this agent's.")
_EVALUATION: Final = Parameter("id", "The evaluation's id, or as much of its beginning as is unique.", required=True)
_ALL_REFUSALS: Final = (400, 401, 404, 503)
_OTLP: Final = (Encoding.PROTOBUF.value, Encoding.JSON.value)
_SENT: Final = (400, 401, 413, 429, 503)

OPERATIONS: Final[dict[tuple[str, str], Operation]] = {
    ("POST", "/v1/traces"): Operation(
        "Accept spans: OTLP/HTTP.", media=_OTLP, body=dict[str, Any], refusals=_SENT, refusal=Status
    ),
    ("POST", "/v1/logs"): Operation(
        "Accept log records: OTLP/HTTP.", media=_OTLP, body=dict[str, Any], refusals=_SENT, refusal=Status
    ),
    ("POST", "/api/feedback"): Operation(
        "Say what you think of a trace, a run or a conversation.",
        FeedbackAnswer,
        body=Said | list[Said],
        refusals=_SENT,
        refusal=Status,
    ),
    ("GET", "/healthz"): Operation("Whether the process is alive.", media=(TEXT,), refusals=(503,), refusal=None),
    ("GET", "/readyz"): Operation("Whether the process can work.", Readiness, refusals=(503,), refusal=Readiness),
    ("GET", "/api/scoreboard"): Operation(
        "The latest runs, and what became of all of them.",
        Scoreboard,
        (_limit(100), _AGENT, Parameter("flag", "Only runs with this flag, such as needs_a_person.")),
    ),
    ("GET", "/api/runs/{prefix}"): Operation(
        "Everything that is stored of one run.", RunDetail, (_of_run(),), refusals=_ALL_REFUSALS
    ),
    ("GET", "/api/runs/{prefix}/verdict"): Operation(
        "The verdict on a run, with what it rests on and what has to be done.",
        StructuredVerdict,
        (_of_run(),),
        refusals=_ALL_REFUSALS,
    ),
    ("GET", "/api/compare"): Operation(
        "Two runs compared by composite and by dimension.",
        Comparison,
        (
            _of_run("a"),
            _of_run("b"),
            Parameter("across_contracts", "true: also where different graders graded them.", bool),
        ),
        refusals=_ALL_REFUSALS,
    ),
    ("GET", "/api/facts"): Operation(
        "The spans and log records of a run's trace.", Facts, (_of_run("run"),), refusals=_ALL_REFUSALS
    ),
    ("GET", "/api/verify"): Operation(
        "Scores made again from stored inputs: of one run, or of the latest ones.",
        list[Verification],
        (Parameter("run", "The run's id, or as much of its beginning as is unique; without one the latest runs."), _limit(100)),
        refusals=_ALL_REFUSALS,
    ),
    ("GET", "/api/conversations"): Operation("The conversations that ended last.", list[Conversation], (_limit(100), _AGENT)),
    ("GET", "/api/conversation"): Operation(
        "One conversation and its last turns.",
        ConversationDetail,
        (Parameter("id", "The conversation's id.", required=True), _limit(1000)),
        refusals=_ALL_REFUSALS,
    ),
    ("GET", "/api/accounting"): Operation("What became of the runs of the project.", Accounting),
    ("GET", "/api/golden"): Operation("The golden cases of the project.", list[GoldenCase]),
    ("GET", "/api/judge/cost"): Operation("What the judge cost, by day and dimension.", list[DayCost], (_limit(100),)),
    ("GET", "/api/telemetry"): Operation("The process's own counters and gauges since its start.", dict[str, float]),
    ("GET", "/api/windows"): Operation(
        "Rates over windows of time, each with interval, outcomes, coverage and both bounds.",
        list[WindowLine],
        (
            Parameter("dimension", "What was measured; verdict where nothing is written."),
            Parameter("length", "Of the windows: 5m where nothing is written."),
            _AGENT,
            _limit(50),
        ),
    ),
    ("GET", "/api/quality"): Operation(
        "The quality scores of the windows that ended last.", list[EvaluationLine], (_AGENT, _limit(50))
    ),
    ("GET", "/api/quality/spec"): Operation("The policies behind quality scores that are in force.", list[Policy]),
    ("GET", "/api/quality/{id}"): Operation(
        "One quality score with its inputs, its policy and the hashes of both.",
        Evaluation,
        (_EVALUATION,),
        refusals=_ALL_REFUSALS,
    ),
    ("POST", "/api/quality/recompute/{id}"): Operation(
        "A quality score made again from stored results: equal, or what is not. Of a window; gate runs have no scores yet. "
        "Where no keys are configured it is answered on loopback only.",
        Reevaluation,
        (_EVALUATION,),
        refusals=_ALL_REFUSALS,
    ),
    ("GET", "/api/openapi.json"): Operation("This document.", dict[str, Any], refusals=()),
    ("GET", "/"): Operation(
        "The status page.",
        parameters=(Parameter("all", "With the gates that do not fire, and what gates said last."),),
        media=(HTML,),
        refusal=None,
    ),
    ("GET", "/runs"): Operation(
        "The page that lists runs.",
        parameters=(
            *(Parameter(name, "As in the form of the page.") for name in FIELDS),
            Parameter("before", "Where the page before ended; without it the newest runs."),
        ),
        media=(HTML,),
        refusal=None,
    ),
    ("GET", "/runs/{run}"): Operation(
        "The page of one run.",
        parameters=(
            _of_run("run"),
            Parameter("version", "Number of one of the run's versions; the one that counts where nothing is written.", int),
            Parameter("steps", "Which page of the steps, from 1.", int),
            Parameter("step", "The span whose step is shown."),
        ),
        media=(HTML,),
        refusals=_ALL_REFUSALS,
        refusal=None,
    ),
    ("GET", "/runs/{run}/value"): Operation(
        "One text of a run as a file.",
        parameters=(_of_run("run"), Parameter("of", "Which text."), Parameter("step", "Of which span.")),
        media=(TEXT,),
        refusals=_ALL_REFUSALS,
        refusal=None,
    ),
    ("GET", "/style.css"): Operation("How the pages look.", media=("text/css",), refusals=()),
}
"""By method and path."""
