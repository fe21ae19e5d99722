"""The command line of dead letters: names, options and help."""

from typing import Annotated

import typer

from pipeline.apps import letter_commands
from pipeline.apps.cli_options import AsJson, Config

letters = typer.Typer(help="What could not be processed: kept for a week, to be looked at and sent back.", no_args_is_help=True)


@letters.command("list")
def dead_letters_list(
    config: Config = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many.")] = 50,
    skip: Annotated[int, typer.Option(min=0, help="How many to leave out, for the pages after the first.")] = 0,
    reason: Annotated[str, typer.Option(help="Only those whose reason or origin has this in it.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="Also those that were sent back.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is kept, of all projects, the latest first."""
    wanted = letter_commands.Wanted(reason=reason, everything=everything)
    raise typer.Exit(letter_commands.list_letters(config, wanted, limit, skip, json=as_json))


@letters.command("show")
def dead_letters_show(
    letter_id: Annotated[str, typer.Argument(metavar="ID", help="The letter's id, or as much of its beginning as is unique.")],
    config: Config = None,
    as_hex: Annotated[bool, typer.Option("--hex", help="Show the bytes as hex, also where they are text.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show one letter, with its bytes."""
    raise typer.Exit(letter_commands.show_letter(config, letter_id, as_hex=as_hex, json=as_json))


@letters.command("replay")
def dead_letters_replay(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID…", help="Letters to send back.")] = None,
    config: Config = None,
    everything: Annotated[bool, typer.Option("--all", help="All that nobody has sent back yet.")] = False,
    reason: Annotated[str, typer.Option(help="With --all: only those whose reason or origin has this in it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Read letters again and send what is in them where it was meant to go; those that fail again stay. It can be repeated."""
    raise typer.Exit(letter_commands.replay(config, ids or [], reason, everything=everything, json=as_json))
