"""The command line of what runs add up to: names, options and help."""

from typing import Annotated

import typer

from pipeline.apps import quality_commands
from pipeline.apps.cli_options import AsJson, Config, Limit, OneAgent

sums = typer.Typer()
"""Commands of the top: added to it without a name of their own."""
quality = typer.Typer(help="Quality scores of cohorts over windows of time, 0 to 100.", no_args_is_help=True)
sums.add_typer(quality, name="quality")

Name = Annotated[str, typer.Argument(metavar="ID", help="The evaluation's id, or as much of its beginning as is unique.")]


@sums.command()
def windows(
    config: Config = None,
    dimension: Annotated[
        str, typer.Option(help="What was measured: a check, a judged dimension, composite or verdict.")
    ] = "verdict",
    length: Annotated[str, typer.Option(help="Of the windows: 5m, and what gates have besides.")] = "5m",
    agent: OneAgent = "",
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """Show rates over windows of time: with interval, outcomes, coverage, and both bounds for what is undecided."""
    raise typer.Exit(quality_commands.windows(config, dimension, length, agent, limit, json=as_json))


@quality.command("list")
def quality_list(config: Config = None, agent: OneAgent = "", limit: Limit = 20, as_json: AsJson = False) -> None:
    """Show the scores of the windows that ended last."""
    raise typer.Exit(quality_commands.latest(config, agent, limit, json=as_json))


@quality.command("show")
def quality_show(name: Name, config: Config = None, as_json: AsJson = False) -> None:
    """Show one score: its inputs, its policy, and the rate behind each component."""
    raise typer.Exit(quality_commands.one(config, name, json=as_json))


@quality.command("spec")
def quality_spec(config: Config = None, as_json: AsJson = False) -> None:
    """Show the policies that are in force, each with its hash."""
    raise typer.Exit(quality_commands.spec(config, json=as_json))


@quality.command("recompute")
def quality_recompute(name: Name, config: Config = None, as_json: AsJson = False) -> None:
    """Make a score again from stored results and say what is not equal; exit code 1 if anything is not."""
    raise typer.Exit(quality_commands.recompute(config, name, json=as_json))
