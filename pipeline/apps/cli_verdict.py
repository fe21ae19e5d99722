"""The command line of verdicts: names, options and help."""

from typing import Annotated

import typer

from pipeline.apps import verdict_commands
from pipeline.apps.cli_options import AsJson, Config

verdicts = typer.Typer()
"""Commands of the top: added to it without a name of their own."""

RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, or as much of its beginning as is unique.")]


@verdicts.command()
def verdict(run_id: RunId, config: Config = None, as_json: AsJson = False) -> None:
    """Show the verdict on a run: who evaluated it, each score with its quote, what has to be done."""
    raise typer.Exit(verdict_commands.verdict(config, run_id, json=as_json))


@verdicts.command()
def compare(
    first: Annotated[str, typer.Argument(metavar="RUN_A", help="The run that is compared with.")],
    second: Annotated[str, typer.Argument(metavar="RUN_B", help="The run that is compared.")],
    config: Config = None,
    across_contracts: Annotated[
        bool, typer.Option("--across-contracts", help="Also where different graders graded them: a difference may be theirs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two runs by composite and by dimension, as far as both are known: better, worse, equal, or not decided."""
    raise typer.Exit(verdict_commands.compare(config, first, second, across_contracts=across_contracts, json=as_json))
