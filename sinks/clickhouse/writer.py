"""Writer: versions of traces in, rows out, in the order of effects of design section 3.

A reader that sees a run finds its results, and a trace counts as graded only when everything else of it is stored. A process that dies
in between leaves an open trace, whose owner writes the same rows again.
"""

from collections.abc import Sequence

from pipeline.model.version import TraceVersion
from sinks.clickhouse.connection import Database
from sinks.clickhouse.result_rows import results_of_trace
from sinks.clickhouse.rows import insert
from sinks.clickhouse.run_rows import place_rows, run_rows, trace_row, transcript_rows


def write(database: Database, versions: Sequence[TraceVersion]) -> None:
    """Write versions of any number of traces with one insert a table: places, results, transcripts, runs, traces.

    All results rows of a trace are in one insert, and so are all its run rows, retractions included: a run is never counted twice or
    missing between two of them.
    """
    insert(database, "places", [row for version in versions for row in place_rows(version)])
    insert(database, "results", [row for version in versions for row in results_of_trace(version)])
    insert(database, "transcripts", transcript_rows(versions))
    insert(database, "runs", [row for version in versions for row in run_rows(version)])
    insert(database, "traces", [row for version in versions if (row := trace_row(version)) is not None])
