"""How long the pages' queries take at a million runs: ``python tests/bench_pages.py [RUNS]``. Prints a line for each.

The rows are made by the engine, each with four calls and eight results; a tenth of them belong to another project.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pipeline.config.store import StoreSettings
from pipeline.model.time import SECOND
from sinks.clickhouse.connection import ClickHouse, connect
from sinks.clickhouse.migrate import migrate
from sinks.clickhouse.run_detail import run_detail
from sinks.clickhouse.run_history import history
from sinks.clickhouse.run_list import Cursor, RunFilter, choices, counts, page

RUNS: Final = 1_000_000
BEGUN_S: Final = 1_790_000_000
_PART: Final = 100_000
_PAGE: Final = 51
_TIMES: Final = 3
_RUN_ROWS: Final = """
INSERT INTO runs (project, trace_id, run_id, version, state, cohort_id, agent, agent_version, environment, minute, started_at, ended_at,
    first_received_at, class, class_reason, verdict, verdict_reason, sampled, inclusion_probability, completed, ended, conversation_id, request,
    answer, tool_calls, steps, tool_call_count, model_calls)
SELECT if(number % 10 = 0, 'other', 'default'), lower(hex(MD5(toString(number)))), lower(hex(MD5(concat('run ', toString(number))))), 12, 'live',
    lower(hex(sipHash64(number % 40))), concat('agent-', toString(number % 20)), concat('v', toString(intDiv(number, 100000))),
    ['production', 'staging'][number % 2 + 1], toDateTime64(BEGUN + intDiv(number, 2), 0, 'UTC'),
    fromUnixTimestamp64Nano(toInt64(BEGUN) * 1000000000 + number * 500000000), fromUnixTimestamp64Nano(toInt64(BEGUN) * 1000000000 + number * 500000000 + 3),
    now64(9), ['judged', 'judged', 'unsampled', 'unresolved', 'pending'][number % 5 + 1], if(number % 5 = 3, 'incomplete', ''),
    [NULL, 'pass', 'fail', 'insufficient_evidence', 'grader_error'][number % 7 % 5 + 1], 'a reason', true, 1, true, 'answer',
    concat('talk-', toString(number % 1000)), repeat('where is my order ', 20), repeat('it has shipped ', 20),
    concat('[', arrayStringConcat(arrayMap(call -> concat('{"name":"tool-', toString((number + call) % 30), '","id":"","arguments":{"order_id":"A-',
        toString(number), '"},"raw_arguments":"","result":"', repeat('status shipped ', 20), '","error":null}'), range(4)), ','), ']'), 10, 4, 3
FROM numbers(FIRST, PART)
""".replace("BEGUN", str(BEGUN_S))
_RESULT_ROWS: Final = """
INSERT INTO results (project, cohort_id, minute, dimension, run_id, contract, version, trace_id, kind, outcome, inclusion_probability, weight, first_received_at)
SELECT if(number % 10 = 0, 'other', 'default'), lower(hex(sipHash64(number % 40))), toDateTime64(BEGUN + intDiv(number, 2), 0, 'UTC'),
    concat('dimension-', toString(dimension)), lower(hex(MD5(concat('run ', toString(number))))), 'c0ffee', 12, lower(hex(MD5(toString(number)))),
    'code', if(number % 1000 = dimension, 'fail', 'pass'), 1, 1, now64(9)
FROM (SELECT number, arrayJoin(range(8)) AS dimension FROM numbers(FIRST, PART))
""".replace("BEGUN", str(BEGUN_S))


def fill(database: ClickHouse, runs: int) -> None:
    """Make the rows."""
    for first in range(0, runs, _PART):
        for sql in (_RUN_ROWS, _RESULT_ROWS):
            database.command(sql.replace("FIRST", str(first)).replace("PART", str(min(_PART, runs - first))))


def cases(database: ClickHouse, runs: int) -> dict[str, Callable[[], Any]]:
    """What is measured, by how it is called."""

    def listed(chosen: RunFilter, before: Cursor | None = None) -> Callable[[], Any]:
        return lambda: page(database, "default", chosen, _PAGE, before)

    newest = page(database, "default", RunFilter(), 1)[0].run_id
    found = run_detail(database, "default", newest)
    half, last_hour = (BEGUN_S + runs // 4) * SECOND, (BEGUN_S + runs // 2 - 3600) * SECOND
    dimension = ("dimension-3",)
    return {
        "the newest runs": listed(RunFilter()),
        "a page from the middle": listed(RunFilter(), Cursor(half, "f")),
        "of one agent": listed(RunFilter(agent=("agent-3",))),
        "of one verdict": listed(RunFilter(verdict="fail")),
        "that called one tool": listed(RunFilter(tool=("tool-3",))),
        "that fail one dimension, one in a thousand": listed(RunFilter(outcome="fail", dimension=dimension)),
        "that pass one dimension, nearly all": listed(RunFilter(outcome="pass", dimension=dimension)),
        "the same within an hour": listed(RunFilter(outcome="pass", since_ns=last_hour, dimension=dimension)),
        "by the beginning of an id": listed(RunFilter(run=newest[:6])),
        "counts of all": lambda: counts(database, "default", RunFilter()),
        "counts of one agent": lambda: counts(database, "default", RunFilter(agent=("agent-3",))),
        "what the form offers": lambda: choices(database, "default"),
        "one run": lambda: run_detail(database, "default", newest),
        "its versions and results": lambda: history(database, "default", found),
    }


def _took(ask: Callable[[], Any]) -> tuple[float, float]:
    """Seconds that passed, and that processors worked: the one that does not depend on what else the machine does."""
    begun, worked = time.perf_counter(), time.process_time()
    ask()
    return time.perf_counter() - begun, time.process_time() - worked


def main(runs: int) -> None:
    """Print what each takes, the best of three."""
    with tempfile.TemporaryDirectory() as folder:
        database = connect(StoreSettings(path=Path(folder)), {})
        migrate(database)
        fill(database, runs)
        sys.stdout.write(f"{runs} runs, {8 * runs} results\n")
        for name, ask in cases(database, runs).items():
            took = [_took(ask) for _ in range(_TIMES)]
            wall, processor = (1000 * min(times) for times in zip(*took, strict=True))
            sys.stdout.write(f"{name:45} {wall:6.0f} ms, {processor:6.0f} ms of processor time\n")
        database.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
