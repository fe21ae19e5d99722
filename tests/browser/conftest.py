"""A browser for the session, and a running ``up`` whose pages it looks at: plain runs, runs of several agents, a long one, a hostile one."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.chromium import WIDE, Browser, a_browser
from browser.shop import Shop, a_shop
from machine import UnavailableError


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for the session."""
    folder = tmp_path_factory.mktemp("chromium")
    try:
        with a_browser(folder / "profile", folder / "downloads") as started:
            yield started
    except UnavailableError as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    finally:
        shutil.rmtree(folder / "profile", ignore_errors=True)


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    """The session's browser, as wide as a desk's, on an empty page."""
    chromium.open("about:blank")
    chromium.resize(*WIDE)
    chromium.emulate()
    return chromium


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[Shop]:  # noqa: ARG001 - without a browser none is needed
    """One ``up`` for the session; nothing changes in it while tests look at it."""
    with a_shop(tmp_path_factory.mktemp("shop")) as started:
        yield started


@pytest.fixture
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the browser keeps files."""
    return next(tmp_path_factory.getbasetemp().glob("chromium*")) / "downloads"
