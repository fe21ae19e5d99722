"""deploy/grafana: every panel's SQL gives the rows that it should, with the rights of Grafana's user, and no text of a span becomes markup or SQL."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from ruamel.yaml import YAML
from unit.deploy.as_user import Said, ask
from unit.deploy.composition import ROOT, services

GRAFANA: Final = ROOT / "deploy" / "grafana"
DASHBOARD: Final = json.loads((GRAFANA / "dashboards" / "tracegrade.json").read_text(encoding="utf-8"))
PANELS: Final[dict[str, dict[str, Any]]] = {panel["title"]: panel for panel in DASHBOARD["panels"]}
VARIABLES: Final[dict[str, dict[str, Any]]] = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
SERIES: Final = sorted(title for title, panel in PANELS.items() if panel["type"] == "timeseries")
MACRO: Final = re.compile(r"\$__timeFilter\((\w+)\)")

M0: Final = 1_760_000_100
"""A minute that begins a window of five, in seconds."""
NANO: Final = 10**9
HOSTILE: Final = "<img src=x onerror=alert(1)>' OR 1=1 -- \\"
AGENT: Final = {"agent": HOSTILE, "agent_version": "1.4.0", "environment": "production"}
MINE: Final = {"project": "shop", "cohort_id": "c1", **AGENT}


def a_run(number: int, run_class: str, reason: str = "", **fields: Any) -> dict[str, Any]:
    columns = {"state": "live", "verdict": None, "verdict_reason": "", "requested_at": None, "deadline_at": None, "minute": M0}
    row = {"trace_id": f"t{number}", "run_id": f"r{number}", "version": 4, "class": run_class, "class_reason": reason}
    return {**MINE, **columns, **row, **fields}


def a_window(start: int, rate: float | None, low: float | None, high: float | None, **fields: Any) -> dict[str, Any]:
    columns = {"length_s": 300, "dimension": "verdict", "contract": "k", "n": 4, "decided": 2, "coverage": 0.5, "version": 4}
    columns |= {"passed": 1, "grader_errors": 1, "pending": 0, "n_effective": 1.5}
    rates = {"rate": rate, "rate_low": low, "rate_high": high, "rate_if_undecided_fail": 0.25, "rate_if_undecided_pass": 0.75}
    return {**MINE, "window_start": start, **columns, **rates, **fields}


ROWS: Final = {
    "runs": [
        a_run(1, "judged", verdict="pass"),
        a_run(2, "judged", verdict="fail", verdict_reason="forbid: <b>large refund</b>", minute=M0 + 60),
        a_run(3, "unsampled"),
        a_run(4, "unresolved", "no_judge", minute=M0 + 120),
        a_run(5, "unresolved", "expired", minute=M0 + 120),
        a_run(6, "pending", requested_at=M0 * NANO, deadline_at=(M0 + 900) * NANO, minute=M0 + 120),
        a_run(7, "judged", state="retracted"),
        a_run(8, "judged", verdict="fail", project="other", agent="theirs"),
        a_run(9, "judged", verdict="pass", agent="second"),
    ],
    "windows": [
        a_window(M0, 0.5, 0.2, 0.8),
        a_window(M0 + 300, None, None, None, decided=0, coverage=0.0),
        a_window(M0 + 900, 1.0, 0.6, 1.0),
        a_window(M0 + 1200, None, None, None, n=0, decided=0, coverage=None),
        a_window(M0, 0.1, 0.0, 0.3, length_s=3600),
        a_window(M0, 0.9, 0.8, 1.0, dimension="answer_present"),
        a_window(M0, 0.0, 0.0, 0.1, project="other"),
    ],
    "gate_states": [
        {**MINE, "gate": "floor", "status": "ok", "why": "", "last_window": M0, "last_failure_at": 0, "version": 1},
        {
            **MINE,
            "gate": "rules",
            "status": "firing",
            "why": "<script>",
            "last_window": 0,
            "last_failure_at": M0 * NANO,
            "version": 1,
        },
    ],
    "trips": [
        {**MINE, "gate": "rules", "trip_id": "x", "transition": "tripped", "run_id": "r2", "kind": "hard", "at": M0 * NANO}
        | {"dimension": "refunds", "value": None, "threshold": None, "why": "<script>", "retracted": False},
    ],
    "notifications": [
        {"project": "shop", "trip_id": "x", "transition": "tripped", "destination": destination, "confirmed_at": at, "version": 1}
        for destination, at in (("on-call", None), ("chat", M0 * NANO))
    ],
    "dead_letters": [
        {"project": project, "dead_letter_id": project or "unread", "origin": "kafka", "reason": "<i>", "body": "abc"}
        | {"received_at": M0 * NANO}
        for project in ("shop", "other", "")
    ],
    "clocks": [{"partition": one, "clock_at": (M0 + one) * NANO, "written_at": (M0 + 5) * NANO} for one in (0, 1)],
}
SUPERSEDED: Final = {
    "runs": [a_run(1, "pending", version=1), a_run(4, "judged", version=1, verdict="fail")],
    "windows": [a_window(M0, 0.0, 0.0, 0.0, version=1)],
    "gate_states": [
        {**MINE, "gate": "floor", "status": "firing", "why": "", "last_window": 1, "last_failure_at": 0, "version": 0}
    ],
    "notifications": [
        {"project": "shop", "trip_id": "x", "transition": "tripped", "destination": "chat", "confirmed_at": None, "version": 0}
    ],
    "clocks": [{"partition": 0, "clock_at": 0, "written_at": 0}],
}
"""Stored before: what no panel counts any more."""
CHOSEN: Final = {"project": b"shop".hex().upper(), "agent": "-", "dimension": b"verdict".hex().upper(), "length": "300"}


def filled(sql: str, chosen: Mapping[str, str] = CHOSEN) -> str:
    """A query as Grafana sends it: its `percentencode`, and the data source's `$__timeFilter`, over an hour."""
    for name, value in chosen.items():
        sql = sql.replace(f"${{{name}:percentencode}}", quote(value, safe=""))
    sql = MACRO.sub(rf"\1 >= toDateTime({M0 - 600}) AND \1 <= toDateTime({M0 + 3000})", sql)
    assert "$" not in sql, f"{sql} holds something that this test does not know"
    return sql


def sql_of(title: str) -> str:
    (target,) = PANELS[title]["targets"]
    sql: str = target["rawSql"]
    return sql


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("dashboard")
    ask("tracegrade", made, [], SUPERSEDED)
    ask("tracegrade", made, [], ROWS)
    return made


@pytest.fixture(scope="module")
def shown(folder: Path) -> dict[str, Said]:
    """What each panel shows."""
    return dict(zip(PANELS, ask("grafana", folder, [filled(sql_of(title)) for title in PANELS]), strict=True))


@pytest.mark.parametrize("title", PANELS)
def test_every_panel_s_query_runs_and_returns_rows(title: str, shown: dict[str, Said]) -> None:
    assert shown[title].error == ""
    assert shown[title].rows


def test_the_accounting_adds_up(shown: dict[str, Said]) -> None:
    counts = {"received": 7, "judged": 3, "unsampled": 1, "unresolved": 2, "pending": 1, "unaccounted": 0}
    assert shown["What became of every run"].rows == [counts]
    assert {(row["class"], row["reason"]): row["runs"] for row in shown["Accounting, by reason"].rows} == {
        ("judged", ""): 3,
        ("unsampled", ""): 1,
        ("unresolved", "no_judge"): 1,
        ("unresolved", "expired"): 1,
        ("pending", ""): 1,
    }


def test_runs_are_counted_by_the_minute_and_the_agent(shown: dict[str, Said]) -> None:
    assert [(row["time"] - M0, row["agent"], row["runs"]) for row in shown["Runs per minute"].rows] == [
        (0, HOSTILE, 2),
        (0, "second", 1),
        (60, HOSTILE, 1),
        (120, HOSTILE, 3),
    ]


def test_what_was_not_measured_is_a_gap_and_never_zero(shown: dict[str, Said]) -> None:
    """The second window decided nothing, the third has no row at all, and the last holds no run."""
    rows = shown["Share of passes, with its interval"].rows
    assert [(row["time"] - M0, row["rate"], row["rate_low"], row["rate_high"]) for row in rows] == [
        (0, 0.5, 0.2, 0.8),
        (300, None, None, None),
        (600, None, None, None),
        (900, 1.0, 0.6, 1.0),
    ]
    bounds = shown["Undecided runs: the bounds they leave"].rows
    assert [(row["coverage"], row["rate_if_undecided_fail"], row["rate_if_undecided_pass"]) for row in bounds] == [
        (0.5, 0.25, 0.75),
        (0.0, 0.25, 0.75),
        (None, None, None),
        (0.5, 0.25, 0.75),
    ]
    for title in SERIES:
        custom = PANELS[title]["fieldConfig"]["defaults"]["custom"]
        assert custom["spanNulls"] is False, f"{title} draws over a gap"
    assert not re.search(r"ifNull|coalesce|assumeNotNull|WITH FILL.*INTERPOLATE", json.dumps(DASHBOARD))
    assert not re.search(r'"noValue": "[0-9]', json.dumps(DASHBOARD))


def test_a_window_is_shown_with_all_four_outcomes_and_its_effective_n(shown: dict[str, Said]) -> None:
    first = shown["Windows, with all that stands beside a rate"].rows[-1]
    outcomes = ("pass", "fail", "insufficient_evidence", "grader_error", "pending")
    assert [first[name] for name in outcomes] == [1, 1, 1, 1, 0]
    assert (first["rate"], first["rate_if_undecided_fail"], first["rate_if_undecided_pass"]) == (0.5, 0.25, 0.75)
    assert (first["coverage"], first["decided"], first["n_effective"]) == (0.5, 2, 1.5)


def test_gates_trips_and_what_is_outstanding_are_shown(shown: dict[str, Said]) -> None:
    assert [(row["gate"], row["status"], row["last_window"], row["last_failure"]) for row in shown["Gates"].rows] == [
        ("rules", "firing", None, M0 * NANO),
        ("floor", "ok", M0, None),
    ]
    (trip,) = shown["Trips"].rows
    assert (trip["gate"], trip["transition"], trip["value"], trip["run_id"]) == ("rules", "tripped", None, "r2")
    (pending,) = shown["Pending runs"].rows
    assert (pending["agent"], pending["runs"], pending["next_deadline"]) == (HOSTILE, 1, (M0 + 900) * NANO)
    assert {(row["project"], row["bytes"]) for row in shown["Dead letters"].rows} == {("shop", 3), ("", 3)}
    (failed,) = shown["Why runs fail"].rows
    assert (failed["reason"], failed["runs"]) == ("forbid: <b>large refund</b>", 1)


def test_delays_are_those_of_the_slowest_partition(shown: dict[str, Said]) -> None:
    clocks = shown["Partitions' clocks"].rows
    assert [row["partition"] for row in clocks] == [0, 1]
    assert clocks[0]["behind"] - clocks[1]["behind"] == 1000
    (behind,) = shown["How far behind"].rows
    assert (behind["pending_runs"], behind["unconfirmed_notifications"], behind["dead_letters"]) == (1, 1, 2)
    assert abs(behind["gates_behind"] - clocks[0]["behind"]) < 60_000


def test_before_the_first_worker_nobody_is_behind_by_a_number(tmp_path: Path) -> None:
    ask("tracegrade", tmp_path, [])
    (said,) = ask("grafana", tmp_path, [filled(sql_of("How far behind"))])
    assert said.rows == [{"pending_runs": 0, "unconfirmed_notifications": 0, "dead_letters": 0, "gates_behind": None}]


@pytest.mark.parametrize("title", SERIES)
def test_a_series_is_in_the_order_of_time(title: str, shown: dict[str, Said]) -> None:
    """Grafana refuses long rows that are not; what is no number and no time is a label."""
    times = [row["time"] for row in shown[title].rows]
    assert times == sorted(times)


def test_variables_offer_what_there_is_by_hexadecimal_value(folder: Path) -> None:
    asked = [filled(one["query"]) for one in VARIABLES.values()]
    offered = {name: said.rows for name, said in zip(VARIABLES, ask("grafana", folder, asked), strict=True)}
    texts = {name: [row["text"] for row in rows] for name, rows in offered.items()}
    assert texts == {
        "project": ["other", "shop"],
        "agent": [HOSTILE, "second"],
        "dimension": ["verdict", "answer_present"],
        "length": ["5 min", "1 h"],
    }
    assert all(re.fullmatch("[0-9A-F]+", row["value"]) for rows in offered.values() for row in rows)


def test_an_agent_is_found_by_its_name_whatever_it_holds(folder: Path) -> None:
    chosen = CHOSEN | {"agent": HOSTILE.encode().hex().upper()}
    (said,) = ask("grafana", folder, [filled(sql_of("What became of every run"), chosen)])
    assert said.rows[0]["received"] == 6


def test_what_a_link_puts_into_a_variable_stays_a_text(folder: Path) -> None:
    """Grafana takes values of variables from its address, so anybody can write one."""
    injected = "') OR 1=1 UNION ALL SELECT 'x' -- \\"
    asked = {
        (title, name): filled(sql_of(title), CHOSEN | {name: injected})
        for title in PANELS
        for name in CHOSEN
        if f"${{{name}:" in sql_of(title)
    }
    for at, said in zip(asked, ask("grafana", folder, list(asked.values())), strict=True):
        assert said.error == "", at
        assert not [row for row in said.rows if {"theirs", "other"} & set(map(str, row.values()))], at
    everything = json.dumps(DASHBOARD)
    used = set(re.findall(r"\$\{(\w+)([^}]*)\}", everything))
    assert used == {
        *((name, ":percentencode") for name in CHOSEN),
        ("__field", ".name"),
        ("__field", ".labels.agent"),
        ("__field", ".labels.cohort"),
    }
    assert re.findall(r"\[\[|\$(?!\{|__timeFilter)\w+", everything) == ["$__all"]


def test_no_text_is_shown_as_markup() -> None:
    assert {panel["type"] for panel in PANELS.values()} == {"table", "timeseries"}
    cells = set(re.findall(r'"cellOptions": \{"type": "([^"]+)"', json.dumps(DASHBOARD)))
    cells |= {
        prop["value"]["type"]
        for panel in PANELS.values()
        for override in panel["fieldConfig"]["overrides"]
        for prop in override["properties"]
        if prop["id"] == "custom.cellOptions"
    }
    assert cells == {"auto", "color-text"}
    assert not re.search(r'"(?:links|dataLinks)": \[[^\]]|<[a-z]|html|markdown', json.dumps(DASHBOARD), re.IGNORECASE)
    assert services()["grafana"]["environment"]["GF_PANELS_DISABLE_SANITIZE_HTML"] == "false"


def test_every_panel_asks_the_provisioned_data_source_and_says_what_it_shows() -> None:
    (datasource,) = YAML(typ="safe").load((GRAFANA / "provisioning" / "datasources" / "clickhouse.yaml").read_text())[
        "datasources"
    ]
    plugin, _, _ = services()["grafana"]["environment"]["GF_PLUGINS_PREINSTALL_SYNC"].partition("@")
    expected = {"type": plugin, "uid": datasource["uid"]}
    assert (datasource["type"], datasource["jsonData"]["host"], datasource["jsonData"]["username"]) == (
        plugin,
        "clickhouse",
        "grafana",
    )
    for panel in PANELS.values():
        assert panel["datasource"] == panel["targets"][0]["datasource"] == expected
        assert panel["description"]
        assert panel["targets"][0]["format"] == (0 if panel["type"] == "timeseries" else 1)
    assert all(one["datasource"] == expected for one in VARIABLES.values())


def test_panels_have_their_own_ids_and_do_not_overlap() -> None:
    assert len({panel["id"] for panel in PANELS.values()}) == len(DASHBOARD["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in PANELS.values():
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_the_dashboard_is_where_grafana_looks_for_it() -> None:
    (provider,) = YAML(typ="safe").load((GRAFANA / "provisioning" / "dashboards" / "tracegrade.yaml").read_text())["providers"]
    grafana = services()["grafana"]
    mounts = {target: source for source, target, *_ in (volume.split(":") for volume in grafana["volumes"])}
    assert mounts[provider["options"]["path"]] == "./deploy/grafana/dashboards"
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{provider['options']['path']}/tracegrade.json"
