"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="Configuration file; ./tracegrade.yaml where it exists, else the defaults.")
]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="How many, the last ones.")]
OneAgent = Annotated[str, typer.Option(help="Only this agent's.")]
OneFlag = Annotated[str, typer.Option(help="Only runs with this flag: needs_a_person lists those that wait for one.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")]
