"""A page's program played to: started as its reader starts it, with the model scripted, its tools recorded, and its spans sent for real."""

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from quickstarts.pages import Page
from quickstarts.scenarios import Scenario, Traits
from quickstarts.scripted_model import FINAL_ANSWER, Served

HERE: Final = Path(__file__).parent
RECEIVER: Final = "http://127.0.0.1:4318"
"""Where the pages send spans."""
OFFLINE: Final = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
"""What keeps a framework from fetching things of its own."""
_SECONDS: Final = 240


class Place(NamedTuple):
    """Where a program runs, and whom it talks to."""

    environment: Path
    folder: Path
    """Of its own, and not there yet."""
    receiver: str
    model: str


class Played(NamedTuple):
    """What really happened: how the program ended, and which tools were entered."""

    scenario: Scenario
    code: int
    answer: str
    """The last line that was printed."""
    err: str
    entered: tuple[Mapping[str, Any], ...]


class Call(NamedTuple):
    """A call as it really was. ``result`` and ``error`` are None where the tool was never entered."""

    tool: str
    arguments: Mapping[str, Any]
    entered: bool
    result: Any = None
    error: str | None = None


def play(page: Page, scenario: Scenario, key: str, place: Place) -> Played:
    """Play a scenario to the end. ``key`` names the script, and is the environment that the run belongs to."""
    place.folder.mkdir(parents=True)
    record = place.folder / "record.jsonl"
    record.touch()
    program = page.programs[scenario.part or next(iter(page.programs))]
    wanted = {**page.exports, **scenario.exports}
    settings = {name: value.replace(RECEIVER, place.receiver) for name, value in wanted.items() if value is not None}
    ended = subprocess.run(
        [*_command(page, place, program), scenario.question],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(place.folder),
            "RECORD": str(record),
            **OFFLINE,
            **settings,
            "OPENAI_API_KEY": key,
            "OPENAI_BASE_URL": place.model,
            "OTEL_RESOURCE_ATTRIBUTES": f"deployment.environment.name={key}",
        },
        cwd=place.folder,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    entered = tuple(json.loads(line) for line in record.read_text().splitlines())
    *_, answer = ("", *ended.stdout.strip().splitlines())
    return Played(scenario, ended.returncode, answer, ended.stderr, entered)


def _command(page: Page, place: Place, program: str) -> list[str]:
    if page.language == "python":
        app = place.folder / "app.py"
        app.write_text(program)
        return [str(place.environment / "bin" / "python"), str(HERE / "recorded.py"), str(app)]
    app = place.folder / "app.mjs"
    app.write_text(re.sub(r"\bexecute: (lookup_order|issue_refund)\b", r"execute: recorded(\1)", program))
    (place.folder / "node_modules").symlink_to(place.environment / "node_modules")
    return ["node", "--import", str(HERE / "recorded.mjs"), str(app)]


def calls(played: Played, served: Sequence[Served], traits: Traits) -> list[Call]:
    """Return what the model asked for, in order, and what became of it. To answer is no call; to hand over is one only by way of a tool."""
    waiting = list(played.entered)
    handing_over = [ask for turn in traits.hand_over if not isinstance(turn, str) for ask in turn]
    made = []
    for ask in (ask for said in served if not isinstance(said.turn, str) for ask in said.turn):
        entry = next((one for one in waiting if (one["tool"], one["arguments"]) == ask), None)
        if entry is not None:
            waiting.remove(entry)
            made.append(Call(ask.tool, ask.arguments, True, entry.get("result"), entry.get("error")))
        elif ask in handing_over:
            made += [Call(ask.tool, ask.arguments, True, traits.hand_back[0])] if traits.hand_back else []
        elif ask.tool != FINAL_ANSWER:
            made.append(Call(ask.tool, ask.arguments, False))
    assert not waiting, "a tool was entered that nobody asked for"
    return made
