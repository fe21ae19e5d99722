"""Key: a new API key, and what to write for it. Nothing is stored."""

from collectors.otlp.keys import new_key
from pipeline.apps.commands import print_json, print_line


def key(project: str, *, as_json: bool) -> int:
    """Print a key that nobody has yet, and its digest."""
    made, digest = new_key()
    if as_json:
        print_json({"project": project, "key": made, "digest": digest})
        return 0
    print_line(f"key:     {made}")
    print_line(f"digest:  {digest}")
    print_line(f'write:   receiver: {{keys: {{{project}: ["{digest}"]}}}}')
    print_line(
        "It is shown this once. A project may have several keys: add the new one, change the agents, take the old one out."
    )
    return 0
