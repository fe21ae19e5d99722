"""Choice: the line under what a command prints, where scores decide that nobody has compared with people's."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.config.tracegrade import TracegradeSettings


def print_choice(settings: "TracegradeSettings") -> None:
    """Print it, where the configuration in force makes that choice (spec section 6)."""
    from pipeline.apps.commands import print_line  # noqa: PLC0415 - the commands import this module
    from pipeline.config.grading import by_choice  # noqa: PLC0415 - it takes the whole of the configuration

    if said := by_choice(settings):
        print_line(said)
