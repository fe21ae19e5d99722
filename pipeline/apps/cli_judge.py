"""The command line of the judge: names, options and help."""

from typing import Annotated

import typer

from pipeline.apps import judge_commands
from pipeline.apps.cli_options import AsJson, Config, Limit

judge = typer.Typer(help="The model that judges: try it on a run, see what it costs.", no_args_is_help=True)


@judge.command("try")
def judge_try(
    run_id: Annotated[str, typer.Argument(help="The run's id, or as much of its beginning as is unique.")],
    dimension: Annotated[str, typer.Option("--dimension", "-d", help="A judged dimension of the run's rubric.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Judge one dimension of a run and show everything: prompt, reply, how it was read, cost. Nothing is stored; the calls are paid."""
    raise typer.Exit(judge_commands.try_(config, run_id, dimension, json=as_json))


@judge.command("cost")
def judge_cost(config: Config = None, limit: Limit = 100, as_json: AsJson = False) -> None:
    """Show what the judge's calls have cost by day, dimension and model."""
    raise typer.Exit(judge_commands.cost(config, limit, json=as_json))
