"""Key: a new API key, and what to write for it. Nothing is stored."""

import re
from typing import Final

import msgspec
from pydantic import TypeAdapter, ValidationError

from collectors.otlp.keys import new_key
from pipeline.apps.commands import print_json, print_line
from pipeline.errors import ConfigurationError
from pipeline.model.settings import Project

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
"""What is text to YAML without quotes."""


def key(project: str, *, as_json: bool) -> int:
    """Print a key that nobody has yet, and its digest.

    Raises:
        ConfigurationError: no project can be called so.
    """
    try:
        TypeAdapter(Project).validate_python(project)
    except ValidationError:
        raise ConfigurationError(f"PROJECT is {project!r}; write letters, digits and signs, such as support-eu") from None
    made, digest = new_key()
    if as_json:
        print_json({"project": project, "key": made, "digest": digest})
        return 0
    print_line(f"key:     {made}")
    print_line(f"digest:  {digest}")
    written = project if _PLAIN.fullmatch(project) else msgspec.json.encode(project).decode()
    print_line(f'write:   receiver: {{keys: {{{written}: ["{digest}"]}}}}')
    print_line(
        "It is shown this once. A project may have several keys: add the new one, change the agents, take the old one out."
    )
    return 0
