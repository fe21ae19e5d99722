"""The columns in which runs are compared: those of a file, whether expected, true or found."""

import ast
import json
from typing import Any, Final

NOT_EXECUTED: Final = "not executed"
COLUMNS: Final = ("agent", "calls", "arguments", "results", "answer", "tokens", "ended")


def columns_of(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """What the runs of a file say together, so that a loop whose model calls are traces of their own compares with one that is a run."""
    calls = [call for run in runs for call in run["calls"]]
    ended = [run["ended"] for run in runs if run["ended"] != "silence"]
    return {
        "agent": list(dict.fromkeys(run["agent"] for run in runs)),
        "calls": [call["name"] + (" (not executed)" if call.get("error") == NOT_EXECUTED else "") for call in calls],
        "arguments": [call.get("arguments") for call in calls],
        "results": [[call.get("result"), call.get("error")] for call in calls],
        "answer": [run["answer"] for run in runs if run["answer"] is not None],
        "tokens": {name: sum(run["tokens"].get(name, 0) for run in runs) for name in ("input", "output", "cached", "reasoning")},
        "ended": ended or ["silence"],
    }


def value_of(text: Any) -> Any:
    """What a result says, whatever the spelling: JSON, Python, or words without the white space around them."""
    if not isinstance(text, str):
        return text
    for parsed in (json.loads, ast.literal_eval):
        try:
            return parsed(text)
        except (ValueError, SyntaxError):
            continue
    return text.strip()
