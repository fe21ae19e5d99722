"""The command line of the judge: names, options and help."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.apps import judge_commands, pair_commands
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


@judge.command("compare")
def judge_compare(
    dimension: Annotated[
        str, typer.Option("--dimension", "-d", help="A judged dimension of the rubric that both are graded by.")
    ],
    run_a: Annotated[str, typer.Argument(metavar="RUN_A", help="A run's id, or as much of its beginning as is unique.")] = "",
    run_b: Annotated[str, typer.Argument(metavar="RUN_B", help="The run that it is compared with.")] = "",
    pairs: Annotated[
        Path | None,
        typer.Option(help="A file of many pairs instead: CSV or JSON lines with a and b, and perhaps better: a, b or tie."),
    ] = None,
    across_requests: Annotated[
        bool, typer.Option("--across-requests", help="Also where the two answer different requests.")
    ] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Ask in both orders which of two runs is better in one dimension; a win counts only both ways. The calls are paid."""
    runs = (run_a, run_b) if run_a or run_b else None
    raise typer.Exit(pair_commands.compare(config, runs, pairs, dimension, across_requests=across_requests, json=as_json))


@judge.command("cost")
def judge_cost(config: Config = None, limit: Limit = 100, as_json: AsJson = False) -> None:
    """Show what the judge's calls have cost by day, dimension and model."""
    raise typer.Exit(judge_commands.cost(config, limit, json=as_json))
