"""Writes the expected runs of ``corpora/live`` from ``truth.jsonl``, and from nothing that the product says.

In the folder ``tests``: ``python -m expected.from_truth``.

Each file's runs are first made as they really were. Then the limits of its framework take away what its traces do not show; where they did,
the truth stands beside the expectation, with the reason.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from expected import limits
from expected.columns import NOT_EXECUTED, columns_of
from expected.limits import Run
from ruamel.yaml import YAML

HERE = Path(__file__).parent
LIVE = HERE.parent / "corpora" / "live"
FRAMEWORKS = sorted(path.parent.name for path in LIVE.glob("*/truth.jsonl"))
TOKENS = {"input": 120, "output": 30, "cached": 20, "reasoning": 5}
"""What the scripted model says that each call took."""
Truth = dict[str, Any]


def expected(framework: str) -> dict[str, Any]:
    """The expected runs of a framework's files, by scenario."""
    truths = map(json.loads, (LIVE / framework / "truth.jsonl").read_text().splitlines())
    return {truth["scenario"]: _expected(f"{framework}/{truth['scenario']}", truth) for truth in truths}


def _expected(file: str, truth: Truth) -> dict[str, Any]:
    runs = true = list(_turns(file, truth))
    reasons: dict[str, list[str]] = {}
    for show, why in _shows(file):
        before, runs = columns_of(runs), [shown for run in runs for shown in show(run)]
        changed = [name for name, value in columns_of(runs).items() if value != before[name]]
        if changed:
            reasons.setdefault(why, []).extend(changed)
    shown = columns_of(runs)
    beside = {name: value for name, value in columns_of(true).items() if value != shown[name]}
    return {"runs": [_compact(run) for run in runs]} | ({"truth": beside, "why": reasons} if beside else {})


def _shows(file: str) -> Iterator[tuple[Any, str]]:
    if limits.is_bare(file):
        yield _a_run_for_each_model_call, limits.BARE_LOOP
    for limit in limits.LIMITS:
        if limit.of(file):
            yield (lambda run, show=limit.show: [show(run)]), limit.why


def _turns(file: str, truth: Truth) -> Iterator[Run]:
    """The runs as they were, one for each of the user's turns. In all scenarios the first turn makes all calls."""
    answers = truth.get("answers", truth["answer"])
    answers = answers if isinstance(answers, list) else [answers]
    for turn, answer in enumerate(answers):
        calls = 1 if turn else truth["model_calls"] - len(answers) + 1
        yield {
            "agent": truth["agent"],
            "agents": limits.sub_agents(file, truth["handoff"]),
            "conversation": limits.conversation(file),
            "request": truth["user"][turn] if "user" in truth else limits.request(file, turn),
            "calls": [] if turn else [*_delegations(file, truth), *map(_call, truth["calls"])],
            "handed_over": bool(truth["handoff"]) and not limits.returns(file),
            "no_content": False,
            "answer": answer,
            "ended": limits.ended(file, truth["ended"]),
            "error": truth.get("exception"),
            "model_calls": calls,
            "tokens": {name: count * calls for name, count in TOKENS.items()},
        }


def _call(call: Truth) -> dict[str, Any]:
    named = {"name": call["tool"], "arguments": call["arguments"]}
    if call.get("executed") is False:
        return named | {"result": call["error"], "error": NOT_EXECUTED}
    told = call.get("told_model")
    return named | {"result": call.get("result") if told is None else told, "error": call.get("error")}


def _delegations(file: str, truth: Truth) -> Iterator[dict[str, Any]]:
    """Calls that return from another agent; in all scenarios they come before what that agent calls."""
    for one in truth["handoff"] if limits.returns(file) else ():
        told = limits.told_by_delegate(file) if one["told_model"] is None else one["told_model"]
        yield {"name": one["tool"], "arguments": one["arguments"], "result": told, "error": None}


def _a_run_for_each_model_call(run: Run) -> Iterator[Run]:
    """A bare loop: each model call is a trace of its own. All but the last ask for calls, one each, or all at once."""
    asking = run["model_calls"] - 1
    calls = [{**call, "result": None, "error": NOT_EXECUTED} for call in run["calls"]]
    each = [[call] for call in calls] if len(calls) == asking else [calls] * asking
    alone = run | {"agent": limits.SERVICE, "model_calls": 1, "tokens": TOKENS}
    for asked in each:
        yield alone | {"calls": asked, "answer": None, "ended": "silence"}
    yield alone | {"calls": []}


def _compact(run: Run) -> Run:
    """Without what is nothing."""
    calls = [{key: value for key, value in call.items() if value is not None} for call in run["calls"]]
    return {key: value for key, value in (run | {"calls": calls}).items() if value not in (None, "", [], False)}


def write(framework: str) -> None:
    """Write the file that is kept."""
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style, yaml.sort_base_mapping_type_on_output = None, False
    yaml.width, yaml.allow_unicode = 160, True
    with (HERE / "live" / f"{framework}.yaml").open("w") as file:
        file.write("# Written by from_truth.py; what it takes away from the truth, and why, is in limits.py.\n")
        yaml.dump(expected(framework), file)


if __name__ == "__main__":
    for name in FRAMEWORKS:
        write(name)
