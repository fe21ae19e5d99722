"""No time zone of the machine takes part: the same numbers go in and come out wherever it stands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from pathlib import Path
from builders import T0, a_span
from unit.clickhouse.records import COHORT, M0, a_run, a_run_version, a_version, opened
from pipeline.config.store import StoreSettings
from pipeline.model.time import MINUTE
from sinks.clickhouse.facts import insert_spans
from sinks.clickhouse.minutes import load_minutes, minute_sums, stale_minutes, write_minutes
from sinks.clickhouse.traces import load
from sinks.clickhouse.writer import write

with opened(StoreSettings(path=Path(sys.argv[1]))) as database:
    span = a_span(project="p")
    insert_spans(database, [span])
    version = a_version(a_run_version(a_run("p"), requested_ns=T0 + 1))
    write(database, [version])
    stored = load(database, [("p", span.trace_id)])["p", span.trace_id]
    assert stored.spans == (span,)
    assert stored.runs[0].requested_ns == T0 + 1
    (key,) = stored.result_keys
    assert key.place.minute_ns == M0
    assert [place for _, place in stale_minutes(database)] == [key.place]
    minutes = minute_sums(database, "p", COHORT.id, [M0])
    assert [(at, sums.n, sums.first_received_ns) for (_, at), sums in minutes.items()] == [(M0, 1, version.runs[0].run.first_received_ns)]
    write_minutes(database, minutes)
    assert load_minutes(database, "p", COHORT.id, M0, M0 + MINUTE) == minutes
    (row,) = database.query("SELECT toString(minute) AS minute, toString(ended_at) AS ended FROM runs")
    print(row["minute"], row["ended"])
"""


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu"])
def test_times_survive_any_time_zone_and_are_shown_in_utc(zone: str, tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    environment = {**os.environ, "TZ": zone, "PYTHONPATH": f"{root}{os.pathsep}{root / 'tests'}"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "data")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "2026-09-21 14:13:00 2026-09-21 14:13:23.000000007"
