"""Run in an environment that has ``agentevals``: score trajectories against references with it, and say how long that took.

``python program.py FILE ROUNDS``: the file is JSON, a list of ``{"outputs": messages, "reference_outputs": messages}`` as OpenAI writes
them. Printed is JSON: by match mode the best seconds of so many rounds, and each pair's answer.
"""

import json
import sys
import time
from pathlib import Path

from agentevals.trajectory.match import create_trajectory_match_evaluator  # type: ignore[import-not-found]

MODES = ("strict", "unordered", "subset", "superset")


def main(file: str, rounds: int) -> None:
    """Measure and print."""
    pairs = json.loads(Path(file).read_text(encoding="utf-8"))
    said = {}
    for mode in MODES:
        score = create_trajectory_match_evaluator(trajectory_match_mode=mode, tool_args_match_mode="exact")
        took = []
        for _ in range(rounds):
            began = time.perf_counter()
            answers = [bool(score(**pair)["score"]) for pair in pairs]
            took.append(time.perf_counter() - began)
        said[mode] = {"seconds": min(took), "answers": answers}
    sys.stdout.write(json.dumps(said))


main(sys.argv[1], int(sys.argv[2]))
