"""``make screenshots``: the pages as a real browser draws them, wide and narrow, light and dark, with the demo's runs and a hostile one.

Two are for the documentation: a part of each page, small enough to be kept, without the hostile run. All others go to the same folder with ``all-`` before
their names, and are for looking at.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from browser.chromium import NARROW, WIDE, Browser, a_browser
from browser.hostile import NAME, a_hostile_run
from ruamel.yaml import YAML
from serving import an_up, eventually, get, tracegrade

_SMALL: Final = (1200, 800)
"""What a README has room for."""


def main(folder: Path) -> None:
    """Draw them."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        kept = Path(made) / "demo"
        said = tracegrade("demo", "--keep", kept)
        if said.code:
            sys.exit(said.err)
        config, data = _config_of(kept)
        with an_up(config, data) as up, a_browser(Path(made) / "profile", Path(made) / "downloads") as browser:
            _draw_for_readers(browser, up.http, folder)
            a_hostile_run(up)
            eventually(lambda: any(row["cohort"]["agent"] == NAME for row in _board(up.http)))
            _draw(browser, up.http, folder)


def _config_of(kept: Path) -> tuple[Path, Path]:
    """Return the demo's configuration with ports that are free, and its data."""
    config = kept / "tracegrade.yaml"
    yaml = YAML()
    written = yaml.load(config)
    written["receiver"] = {**(written.get("receiver") or {}), "http_port": 0, "grpc_port": 0, "project": "demo"}
    data = kept / "data"
    written["store"] = {"path": str(data)}
    written["assemble"] = {"quiet_period": "500ms"}
    for section in ("judge", "alerts"):  # the demo's are gone
        written.pop(section, None)
    yaml.dump(written, config)
    return config, data


def _board(url: str) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = get(f"{url}/api/scoreboard").json["runs"]
    return runs


def _failed(url: str) -> str:
    """The path of a run that failed, with a judge's reasons."""
    return f"/runs/{next(row['run_id'] for row in _board(url) if row['verdict'] == 'fail' and row['composite_low'] is not None)}"


def _draw_for_readers(browser: Browser, url: str, folder: Path) -> None:
    browser.resize(*_SMALL)
    browser.open(f"{url}/runs")
    browser.screenshot(folder / "runs.png")
    browser.open(f"{url}{_failed(url)}#scores")
    browser.screenshot(folder / "run.png")


def _draw(browser: Browser, url: str, folder: Path) -> None:
    hostile = next(row["run_id"] for row in _board(url) if row["cohort"]["agent"] == NAME)
    paths = {"runs": "/runs", "run": _failed(url), "hostile": f"/runs/{hostile}", "status": "/?all"}
    for name, path in paths.items():
        for scheme in ("light", "dark"):
            for width, height in (WIDE, NARROW):
                browser.resize(width, height)
                browser.emulate(scheme=scheme)
                browser.open(f"{url}{path}")
                browser.screenshot(folder / f"all-{name}-{scheme}-{width}.png", whole=True)
    for one in sorted(folder.glob("*.png")):
        sys.stdout.write(f"{one} {one.stat().st_size // 1024} KiB\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
