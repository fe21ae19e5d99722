"""Failures: the failing code results that hard gates act on, as far as no trip names their run."""

from collections.abc import Sequence
from typing import Final

from pipeline.model.time import SECOND
from pipeline.model.window import Touched
from pipeline.stages.gate_hard import Failure
from sinks.clickhouse.connection import Database, Row
from sinks.clickhouse.rows import minute, minute_ns, ns
from sinks.clickhouse.run_rows import cohort_of

_TOUCHED: Final = """
SELECT project, run_id, agent, agent_version, environment, minute, dimension, contract, reason, first_received_at
FROM results FINAL
WHERE (project, cohort_id, minute) IN {places:Array(Tuple(String, String, DateTime64(0, 'UTC')))}
    AND kind = 'code' AND outcome = 'fail' AND weight > 0 AND series = 'live'
ORDER BY project, minute, run_id, dimension, contract
"""
_UNTRIPPED: Final = """
SELECT project, run_id, agent, agent_version, environment, minute, dimension, contract, reason, first_received_at
FROM results FINAL
WHERE minute >= toDateTime64({since:Int64}, 0, 'UTC')
    AND kind = 'code' AND outcome = 'fail' AND weight > 0 AND series = 'live'
    AND (project, run_id) NOT IN (SELECT project, run_id FROM trips)
ORDER BY project, minute, run_id, dimension, contract
"""


def failures(database: Database, touched: Sequence[Touched]) -> list[Failure]:
    """Return the failing code results of these minutes."""
    places = sorted({(one.project, one.cohort.id, minute(one.minute_ns)) for one in touched})
    return [_failure(row) for row in database.query(_TOUCHED, {"places": places})] if places else []


def untripped_failures(database: Database, since_ns: int = 0) -> list[Failure]:
    """Return the failing code results, in minutes since then, whose run no trip names: what a lost message would have told."""
    return [_failure(row) for row in database.query(_UNTRIPPED, {"since": since_ns // SECOND})]


def _failure(row: Row) -> Failure:
    return Failure(
        minute_ns=minute_ns(row["minute"]),
        run_id=row["run_id"],
        dimension=row["dimension"],
        contract=row["contract"],
        project=row["project"],
        cohort=cohort_of(row),
        reason=f"{row['dimension']}: {row['reason']}".rstrip(": "),
        received_ns=ns(row["first_received_at"]),
    )
