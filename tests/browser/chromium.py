"""A real headless Chromium, driven through WebDriver: Debian's own browser and driver, whose versions go together.

What it asked of the network and what its console said is kept, so that a page can be held to what it may do.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from machine import UnavailableError
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

WIDE, NARROW = (1400, 1000), (400, 900)
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
_FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",  # tests run as root in containers
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--lang=en-GB",
    # Whatever a page would fetch from elsewhere is asked for, seen, and not found.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


def installed() -> tuple[str, str]:
    """Where the browser and its driver are.

    Raises:
        UnavailableError: one of them is not here.
    """
    browser = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        raise UnavailableError(
            f"no {'Chromium' if browser is None else 'chromedriver'}; install Debian's chromium and chromium-driver"
        )
    return browser, driver


class Browser:
    """One window of it."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        """Go to an address, and forget what was asked before."""
        self.requests()
        self.console()
        self.driver.get(url)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        return [one.text for one in self.all(selector)]

    def text(self) -> str:
        """All that stands on the page, folded parts too: what a reader may see, as characters."""
        return str(self.run("return document.documentElement.textContent"))

    def run(self, script: str, *arguments: Any) -> Any:
        """Ask the page something, past its own policy."""
        return self.driver.execute_script(script, *arguments)

    def link(self, text: str) -> WebElement:
        return self.driver.find_element(By.LINK_TEXT, text)

    def resize(self, width: int, height: int) -> None:
        """Have a viewport of this size, whatever a window needs around it."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def emulate(self, *, scheme: str = "light", media: str = "") -> None:
        """Prefer light or dark, on a screen or on paper."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def requests(self) -> list[str]:
        """Addresses that were asked for since this was asked last, answered or not; not those that the page's own policy held back."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]  # type: ignore[no-untyped-call]
        held = {event["params"]["requestId"] for event in events if event["params"].get("blockedReason") == "csp"}
        sent = [
            event["params"] for event in events if event["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated")
        ]
        return [one["request"]["url"] if "request" in one else one["url"] for one in sent if one["requestId"] not in held]

    def elsewhere(self, url: str) -> list[str]:
        """Those of the requests that went to no address of this server. The glyph in the browser's own date fields is none: it is data."""
        own = urlsplit(url)[:2]
        return [
            asked
            for asked in self.requests()
            if urlsplit(asked)[:2] != own and not asked.startswith("data:image/svg+xml;base64,")
        ]

    def console(self) -> list[str]:
        """What the browser complained of since this was asked last, blocked scripts among it."""
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def dialog(self) -> str | None:
        """What a dialog says that is open."""
        try:
            return str(self.driver.switch_to.alert.text)
        except NoAlertPresentException:
            return None

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Keep what is seen, or the page from top to bottom."""
        height = int(self.run("return document.documentElement.scrollHeight")) if whole else 0
        if height:
            width = int(self.run("return window.innerWidth"))
            self.resize(width, min(height, 8000))
        path.write_bytes(self.driver.get_screenshot_as_png())


@contextmanager
def a_browser(profile: Path, downloads: Path) -> Iterator[Browser]:
    """Start a browser with a profile of its own, and end it."""
    browser, driver = installed()
    options = ChromeOptions()
    options.binary_location = browser
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    options.set_capability("unhandledPromptBehavior", "ignore")
    options.add_experimental_option(
        "prefs", {"download.default_directory": str(downloads), "download.prompt_for_download": False}
    )
    with Chrome(options=options, service=Service(driver)) as started:
        started.execute_cdp_cmd("Network.enable", {})
        yield Browser(started)
