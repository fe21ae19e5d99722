"""The five minutes of ``docs/judge.md``, typed as they stand there, at a scripted endpoint; but for its address, and ports that are free."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from faults.outside import Outside
from ruamel.yaml import YAML
from serving import Said, an_up, eventually, get, tracegrade

from pipeline.judges.scripted import MODEL

ROOT: Final = Path(__file__).parents[2]
SECTION: Final = (ROOT / "docs" / "judge.md").read_text(encoding="utf-8").partition("\n## ")[0]
RECEIVED_AT: Final = "http://127.0.0.1:4317"
"""Where the page sends to."""
KINDS: Final = re.compile(
    r"^(?:ok|NOT OK|-) {2,}\w+|^(?:--- \w+|=== (?!BEGIN|END)|run [0-9a-f]{32}|sent \d+ of \d+ spans|    quoted:|    the judge is)"
)
"""How those lines begin that the page shows of what is printed."""


class Shown(NamedTuple):
    """A command of the page, and what the page says that it prints."""

    words: Sequence[str]
    lines: Sequence[str]


def commands() -> list[Shown]:
    """All of them, in order."""
    found = []
    for block in re.findall(r"```console\n(.+?)```", SECTION, re.DOTALL):
        for typed in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *printed = typed.splitlines()
            found.append(Shown(shlex.split(line, comments=True), printed))
    return found


def configurations() -> list[Mapping[str, Mapping[str, object]]]:
    """The configuration at first, and later."""
    return [YAML(typ="safe").load(block) for block in re.findall(r"```yaml\n(.+?)```", SECTION, re.DOTALL)]


def kinds(lines: Sequence[str]) -> list[str]:
    """Return what kinds of lines these are."""
    return [" ".join(found[0].split()) for line in lines if (found := KINDS.match(line))]


@pytest.mark.real
@pytest.mark.timeout(600)
def test_the_page_is_typed_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup, doctor, up, replay, scoreboard, run, attempt, cost = commands()
    assert (setup.words, up.words) == (["make", "setup"], [".venv/bin/tracegrade", "up"])
    (tmp_path / "pipeline").symlink_to(ROOT / "pipeline")
    monkeypatch.chdir(tmp_path)
    with Outside() as outside:
        _write(tmp_path, configurations()[0], outside.judge.url)
        _holds(doctor, _typed(doctor))
        with an_up(tmp_path / "tracegrade.yaml", tmp_path / "tracegrade-data") as served:
            sent = _typed(replay, "--endpoint", f"http://{served.grpc}", "--protocol", "grpc")
            assert sent.out.replace(f"http://{served.grpc}", RECEIVED_AT).splitlines() == list(replay.lines)
            eventually(lambda: _is_judged(served.http))
            assert run.words[-1] in _typed(scoreboard).out
            assert "uncalibrated" in _typed(run).out
            _holds(attempt, _typed(attempt))
            assert "9 calls, 0.0000 dollars known; 9 answered calls without a known cost" in _typed(cost).out
        _write(tmp_path, configurations()[1], outside.judge.url)
        priced = tracegrade("doctor")
        assert re.search(r"tokens in, \d+ out: 0\.\d{4} dollars", priced.out), priced


def test_the_readme_leads_to_it() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"^## .*first judge", readme, re.MULTILINE)
    assert "(docs/judge.md)" in readme


def _write(folder: Path, configured: Mapping[str, Mapping[str, object]], url: str) -> None:
    """Write what the page says, with an address and a model of one's own."""
    own = {**configured["judge"], "base_url": url, "model": MODEL}
    with (folder / "tracegrade.yaml").open("w") as file:
        YAML().dump({**configured, "judge": own, "receiver": {"http_port": 0, "grpc_port": 0}}, file)


def _typed(shown: Shown, *more: str) -> Said:
    assert shown.words[0] == ".venv/bin/tracegrade"
    said = tracegrade(*shown.words[1:], *more)
    assert said.code == 0, said
    return said


def _holds(shown: Shown, said: Said) -> None:
    assert kinds(shown.lines), f"nothing is shown of {shown.words}"
    assert kinds(said.out.splitlines()) == kinds(shown.lines)


def _is_judged(http: str) -> bool:
    accounting = get(f"{http}/api/accounting").json
    return bool(accounting["judged"]) and not accounting["pending"]
