"""``tracegrade windows`` and ``tracegrade quality``: of a running ``up``, and of its folder when it has ended."""

import signal
from pathlib import Path
from typing import Any

from serving import Up, an_agent_runs, an_up, eventually, get, http_exporter, tracegrade

CONFIG = """
store: {{path: {data}}}
receiver: {{http_port: 0, grpc_port: 0}}
assemble: {{quiet_period: 300ms}}
agents:
  default:
    rubric: null
    checks:
      policies: [{{name: no_deletion, forbid: {{tool: delete_customer}}}}]
"""
SAFETY_AND_TIME = {"schema": None, "judge": None, "safety": "0.5", "safety_source": "checks", "cost_usd": None}


def evaluated(up: Up) -> dict[str, Any]:
    """Wait until both runs are in one window that was evaluated."""

    def found() -> dict[str, Any] | None:
        lines: list[dict[str, Any]] = get(f"{up.http}/api/quality").json
        return next((one for one in lines if one["rate"]["decided"] == 2), None)

    line: dict[str, Any] = eventually(found)
    return line


def test_scores_are_shown_and_made_again_by_a_running_up_and_from_its_folder(tmp_path: Path) -> None:
    config = tmp_path / "tracegrade.yaml"
    config.write_text(CONFIG.format(data=tmp_path / "data"))
    with an_up(config, tmp_path / "data") as up:
        an_agent_runs(http_exporter(up), "shop")
        an_agent_runs(http_exporter(up), "shop", tools=("delete_customer",))
        line = evaluated(up)
        assert (line["rate"]["passed"], line["rate"]["failed"]) == (1, 1)
        again = tracegrade("quality", "recompute", line["id"][:16], "-c", config)
        assert (again.code, again.out) == (0, f"{line['id']}: equal, {line['score']}\n")
        policies = tracegrade("quality", "spec", "--json", "-c", config).json
        assert [one["spec"]["safety_checks"] for one in policies] == [["no_deletion"]]
        missing = tracegrade("quality", "show", "gate-run-1", "-c", config)
        assert missing.code == 2
        assert "gate runs have none yet" in missing.err
        up.ends(signal.SIGTERM)
    told = tracegrade("quality", "show", line["id"], "--json", "-c", config).json
    inputs = told["quality"]["inputs"]
    assert {name: inputs[name] for name in SAFETY_AND_TIME} == SAFETY_AND_TIME
    assert (inputs["runs"], inputs["timed"], told["quality"]["revision"]) != (0, 0, "")
    windows = tracegrade("windows", "-c", config)
    assert "verdict: 0.5 (" in windows.out, windows
    changed = tmp_path / "other.yaml"
    changed.write_text(f"{config.read_text()}quality: {{budget_usd: 0.5}}\n")
    unequal = tracegrade("quality", "recompute", line["id"], "-c", changed)
    assert (unequal.code, unequal.out) == (
        1,
        f"{line['id']}: not equal\n  spec: spec.budget_usd is nothing as stored, 0.5 made again\n",
    )
