"""Facts that were changed by hand: what is stored of a judgment or of feedback is not what its hash says."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pipeline.model.result import content_hash
from sinks.clickhouse.connection import Database
from sinks.clickhouse.fact_rows import feedback_of, judgment_of

_JUDGMENTS: Final = (
    "SELECT * FROM judgments FINAL PREWHERE project = {project:String} AND trace_id = {trace:String} ORDER BY judgment_id"
)
_FEEDBACK: Final = (
    "SELECT * FROM feedback FINAL PREWHERE project = {project:String} AND trace_id = {trace:String} ORDER BY feedback_id"
)


class Altered(NamedTuple):
    """A fact, the hash that it was stored with, and that of what stands there."""

    what: str
    stored: str
    now: str


def altered_facts(database: Database, project: str, trace_id: str) -> list[Altered]:
    """Return the judgments and the feedback of a trace that are not what was stored; rows from before there was a hash cannot tell."""
    return [one for one in _hashed(database, project, trace_id) if one.stored and one.stored != one.now]


def _hashed(database: Database, project: str, trace_id: str) -> Iterator[Altered]:
    of_trace = {"project": project, "trace": trace_id}
    for row in database.query(_JUDGMENTS, of_trace):
        what = f"judgment {row['judgment_id']} of {row['dimension']}"
        yield Altered(what, row["content_hash"], content_hash(judgment_of(row)))
    for row in database.query(_FEEDBACK, of_trace):
        yield Altered(f"feedback {row['feedback_id']}", row["content_hash"], content_hash(feedback_of(row)))
