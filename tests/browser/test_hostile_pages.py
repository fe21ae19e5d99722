"""Hostile content in every place that somebody can write to: nothing of it runs, nothing leaves the server, all of it stands there as text."""

import re
from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.parse import quote, urlencode

import pytest
from browser.chromium import Browser
from browser.hostile import ACTING, ATTACKS, EVERYTHING, NAME, WRITTEN
from browser.shop import Shop
from serving import eventually, get

from pipeline.apps.pages.runs_query import FIELDS

pytestmark = pytest.mark.browser

# Written into every document before anything in it runs: whatever of an attack runs would tell.
SENTINEL = """
window.owned = (...what) => { document.documentElement.dataset.owned = String(what) };
for (const name of ['alert', 'confirm', 'prompt', 'open', 'fetch']) window[name] = (...what) => owned(name, ...what);
document.addEventListener('securitypolicyviolation', event => { (window.violations ??= []).push(event.violatedDirective + ' ' + event.blockedURI) });
"""

# What no template has: elements that do something, handlers, styles, and links to anywhere but this server. What is no page of ours, such as an
# address that no route has, is plain text, and the browser's own page around it.
STRANGE = """
if (document.contentType !== 'text/html') return [];
const all = [...document.querySelectorAll('*')];
const doing = 'script img svg iframe object embed base style audio video math template textarea'.split(' ');
return [
  ...all.filter(one => doing.includes(one.localName)).map(one => one.outerHTML),
  ...all.flatMap(one => one.getAttributeNames().filter(name => name.startsWith('on') || name === 'style' || name === 'srcdoc' || name === 'autofocus')),
  ...[...document.querySelectorAll('link:not([rel=stylesheet]), meta[http-equiv]:not([content="5"])')].map(one => one.outerHTML),
  ...[...document.links, ...document.forms].filter(one => new URL(one.href ?? one.action).origin !== location.origin).map(one => one.outerHTML),
];
"""


@pytest.fixture
def watched(browser: Browser) -> Iterator[Browser]:
    added = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": SENTINEL})
    yield browser
    browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]})


def pages(shop: Shop, fields: tuple[str, ...] = ("agent", "verdict", "before")) -> list[str]:
    """Addresses with hostile runs behind them, and hostile addresses: of the list's form those with these fields."""
    run = f"/runs/{shop.run(NAME)}"
    judged = f"/runs/{shop.run('judged')}"  # its judge is as hostile
    return [
        "/",
        "/?all",
        "/runs",
        f"/runs?{urlencode({'agent': NAME, 'version': NAME, 'environment': NAME, 'tool': NAME})}",
        *(f"/runs?{urlencode({name: EVERYTHING})}" for name in fields),
        run,
        judged,
        f"{run}?{urlencode({'step': EVERYTHING})}#{quote(EVERYTHING)}",
        f"{run}?{urlencode({'version': EVERYTHING})}",
        f"{run}/value?{urlencode({'of': 'result', 'step': EVERYTHING})}",
        f"/runs/{quote(EVERYTHING, safe='')}",
        f"/{quote(EVERYTHING, safe='')}",
    ]


@pytest.mark.parametrize(
    "fields", [("agent", "verdict", "before"), pytest.param(FIELDS, marks=pytest.mark.real)], ids=["short", "every field"]
)
def test_nothing_runs_nothing_leaves_the_server_and_no_element_is_there_that_no_template_has(
    watched: Browser, shop: Shop, fields: tuple[str, ...]
) -> None:
    for path in pages(shop, fields):
        watched.open(f"{shop.url}{path}")
        assert watched.dialog() is None, path
        assert watched.run(STRANGE) == [], path
        for summary in watched.all("summary"):
            summary.click()
        assert watched.run("return document.documentElement.dataset.owned ?? null") is None, path
        assert watched.run("return window.violations ?? []") == [], path
        assert watched.elsewhere(shop.url) == [], path
        assert not [said for said in watched.console() if "Content Security Policy" in said], path


def test_all_of_it_stands_there_as_it_was_written(browser: Browser, shop: Shop) -> None:
    browser.open(f"{shop.url}/runs/{shop.run(NAME)}")
    text = browser.text()
    assert [attack for attack in ATTACKS if " ".join(attack.split()) not in " ".join(text.split())] == []
    assert [written for written in WRITTEN if written not in text] == []
    assert "49" not in browser.one("#request").text, "7 * 7 was worked out"
    request, answer = browser.one("#request pre").text, browser.one("#answer pre").text
    assert all(attack in request and attack in answer for attack in ATTACKS)
    feedback = browser.one("#feedback").text
    assert ATTACKS[0] in feedback
    for summary in browser.all("#judge summary"):
        summary.click()
    assert ATTACKS[0] in browser.one("#judge").text


def test_what_acts_on_a_reader_is_on_no_page(shop: Shop) -> None:
    acting = set(ACTING) - set(map(chr, range(32, 127)))
    for path in pages(shop):
        assert not acting & set(get(f"{shop.url}{path}").text), path


def test_a_hostile_name_is_found_by_its_link_and_by_what_the_page_shows(browser: Browser, shop: Shop) -> None:
    browser.open(f"{shop.url}/runs?{urlencode({'agent': NAME})}")
    assert len(browser.all("tbody tr")) == 1
    shown = browser.one("[name=agent]").get_attribute("value")
    assert shown is not None
    assert re.search(r"\\u202e", shown), "the reading direction is not turned in the field either"
    browser.one("form.filter button").click()
    assert len(browser.all("tbody tr")) == 1, "what the field shows is what it means"


def test_the_policy_holds_what_escaping_would_let_through(watched: Browser, shop: Shop) -> None:
    """The second wall by itself: the page is given a script, a handler and a picture from elsewhere, as if nothing had been escaped."""
    watched.open(f"{shop.url}/runs")
    watched.run(
        "const one = document.createElement('div'); one.innerHTML = arguments[0]; document.body.append(one);"
        "const script = document.createElement('script'); script.textContent = \"owned('script')\"; document.body.append(script);",
        "".join(ATTACKS[:7]),  # a page that is refreshed away is no policy's matter
    )
    expected = {"script-src-elem", "script-src-attr", "img-src", "style-src-elem"}
    eventually(lambda: expected <= {one.split()[0] for one in watched.run("return window.violations ?? []")})
    assert watched.run("return document.documentElement.dataset.owned ?? null") is None
    assert watched.elsewhere(shop.url) == []


def test_no_other_page_may_frame_one(watched: Browser, shop: Shop) -> None:
    watched.open(f"data:text/html,<iframe src='{shop.url}/runs'></iframe>")
    assert f"{shop.url}/runs" in watched.requests()
    watched.driver.switch_to.frame(watched.one("iframe"))
    assert watched.all("form.filter") == []
    watched.driver.switch_to.default_content()


@pytest.mark.parametrize("path", ["/", "/runs", "/runs/{run}", "/runs/{run}/value?of=request", "/runs/zz"])
def test_every_answer_carries_the_policy_and_is_kept_nowhere(shop: Shop, path: str) -> None:
    headers = get(f"{shop.url}{path.format(run=shop.run('lead'))}").headers
    assert headers["Content-Security-Policy"] == (
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"


def test_a_value_is_a_file_and_never_a_page(shop: Shop) -> None:
    answer = get(f"{shop.url}/runs/{shop.run(NAME)}/value?of=request")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert ATTACKS[0] in answer.text


@pytest.mark.parametrize("path", ["/", "/runs", "/runs/zz", "/style.css"])
def test_without_keys_a_page_is_shown_under_the_names_of_this_machine_alone(shop: Shop, path: str) -> None:
    """Somebody else's name that was made to lead here (DNS rebinding) would make their page one of ours."""
    port = int(shop.url.rpartition(":")[2])
    for host, refused in (
        ("canary.invalid", True),
        (f"canary.invalid:{port}", True),
        ("127.0.0.1.canary.invalid", True),
        (f"localhost:{port}", False),
    ):
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", path, headers={"Host": host})
        assert (connection.getresponse().status == 403) is refused, host
        connection.close()
