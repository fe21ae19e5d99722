"""The command line of gates: names, options and help."""

from typing import Annotated

import typer

from pipeline.apps import gate_commands
from pipeline.apps.cli_options import AsJson, Config

gate = typer.Typer(help="What watches production.", no_args_is_help=True)


@gate.command("simulate")
def gate_simulate(
    name: Annotated[
        str, typer.Argument(metavar="[GATE]", help="The gate's name; every gate over rates where none is named.")
    ] = "",
    config: Config = None,
    runs_per_hour: Annotated[float, typer.Option(help="Runs of one cohort in an hour.")] = 60,
    judged: Annotated[float, typer.Option(help="Share of them whose dimension is judged; 1 for checks in code.")] = 1,
    failing: Annotated[
        float | None,
        typer.Option(help="True share of failing runs while nothing happens; 80 % of what the gate allows by itself."),
    ] = None,
    months: Annotated[int, typer.Option(help="Months of 30 days to play; each takes about a second.")] = 12,
    seed: Annotated[int, typer.Option(help="Another seed is other traffic.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Play traffic to the gates: how often they fire for nothing in 30 days, and how soon on a change."""
    raise typer.Exit(gate_commands.simulate(config, name, runs_per_hour, judged, failing, months, seed, json=as_json))
