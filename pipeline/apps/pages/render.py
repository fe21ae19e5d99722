"""Render: templates into pages. The one place that knows Jinja, and where text from spans becomes text for a reader.

Everything is escaped unless it is made here, and what would act on a reader (control characters, turned reading directions) is written out.
"""

from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pipeline.apps.pages.excerpt import Piece
from pipeline.apps.pages.words import cost, count, duration, number, percent
from pipeline.apps.show import counted, utc
from pipeline.apps.text import as_json, one_line, visible

LONGEST: Final = 400
"""Characters of a text in one line; what may be longer is shown as an excerpt, with the way to the whole of it."""
STYLE: Final = files("pipeline.apps.pages").joinpath("style.css").read_text(encoding="utf-8")
STYLE_PATH: Final = "/style.css"


def page(template: str, **values: Any) -> str:
    """Return a page as HTML. A name that the template knows and nobody gave is an error, never an empty place."""
    return _environment.get_template(template).render(**values)


def url(path: str, /, **query: Any) -> Markup:
    """Return an address on this server. ``path`` is ours; what comes from elsewhere goes through :func:`segment` or the query."""
    given = {name: value for name, value in query.items() if value not in (None, "")}
    fragment = given.pop("fragment", "")
    asked = f"?{urlencode(given, errors='replace')}" if given else ""
    return Markup(escape(f"{path}{asked}{'#' + quote(str(fragment), safe='', errors='replace') if fragment else ''}"))  # noqa: S704


def segment(text: str) -> str:
    """Return a text as one part of a path, whatever is in it."""
    return quote(text, safe="", errors="replace")


def block(text: str) -> Markup:
    """Return a text of several lines, its line ends and spaces kept."""
    return escape(visible(text))


def name(text: str) -> Markup:
    """Return a name, which a line may end in after each underscore: there its words end."""
    return Markup("_<wbr>").join(escape(one_line(text, LONGEST)).split("_"))


def pieces(some: tuple[Piece, ...]) -> Markup:
    """Return an excerpt, with what was quoted from it marked."""
    return Markup("").join(Markup("<mark>{}</mark>").format(block(one.text)) if one.quoted else block(one.text) for one in some)


def _shown(value: Any) -> Any:
    """Autoescaping makes text harmless to a browser; this makes it honest to its reader, and leaves room for the rest of the page."""
    return one_line(value, LONGEST) if isinstance(value, str) and not hasattr(value, "__html__") else value


_environment: Final = Environment(
    loader=PackageLoader("pipeline.apps", "pages"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_shown,
    trim_blocks=True,
    lstrip_blocks=True,
)
_words: Final[Mapping[str, Any]] = {
    "as_json": as_json,
    "block": block,
    "cost": cost,
    "count": count,
    "counted": counted,
    "duration": duration,
    "name": name,
    "number": number,
    "percent": percent,
    "pieces": pieces,
    "segment": segment,
    # Its name changes with it, so that a browser may keep it and never shows a page in the clothes of another release.
    "style": f"{STYLE_PATH}?{sha256(STYLE.encode()).hexdigest()[:12]}",
    "url": url,
    "utc": utc,
}
_environment.globals.update(_words)
