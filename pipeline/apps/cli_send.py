"""The command line of what sends to a receiver: names, options and help."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.apps import feedback_command, replay_command
from pipeline.apps.cli_options import AsJson, Config
from pipeline.apps.feedback_command import About

sends = typer.Typer()
Key = Annotated[
    str,
    typer.Option(envvar="TRACEGRADE_KEY", help="API key of the receiver; the configuration's own where no endpoint is named."),
]


@sends.command()
def replay(
    files: Annotated[
        list[Path], typer.Argument(help="Recorded traces: OTLP/JSON lines and other known shapes, or folders of them.")
    ],
    endpoint: Annotated[
        str, typer.Option(help="Where to send: an OTLP endpoint; the configuration's own receiver where none is named.")
    ] = "",
    protocol: Annotated[str, typer.Option(help="grpc or http/protobuf; by the endpoint's port where not given.")] = "",
    times: Annotated[
        str, typer.Option(help="original, shifted (the last span ends now) or backfill (original times, outside all gates).")
    ] = "shifted",
    same_ids: Annotated[
        bool, typer.Option("--same-ids", help="Keep trace and span ids; moved traces get new ones otherwise.")
    ] = False,
    key: Key = "",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Send recorded traces through an OTLP endpoint."""
    raise typer.Exit(replay_command.replay(files, config, endpoint, protocol, times, key, same_ids=same_ids, json=as_json))


@sends.command()
def feedback(
    about: Annotated[str, typer.Argument(metavar="ID", help="The whole id of a run, or of what --of says.")],
    value: Annotated[str, typer.Option(help="up, down, or a number; below 0 is a thumbs-down.")],
    of: Annotated[About, typer.Option(help="What the id names; of a conversation, the run that ended last.")] = About.RUN,
    comment: Annotated[str, typer.Option(help="Why.")] = "",
    author: Annotated[str, typer.Option(help="Who says so.")] = "",
    name: Annotated[str, typer.Option("--id", help="A key of your own: what is sent again under it is the same feedback.")] = "",
    endpoint: Annotated[
        str,
        typer.Option(
            help="Where to send: the HTTP address of an up or a collector; the configuration's own where none is named."
        ),
    ] = "",
    key: Key = "",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Say what you think of a run; a thumbs-down has it judged whatever the sample says."""
    said = {
        f"{of}_id": about.strip(),
        "value": feedback_command.value_of(value),
        "comment": comment,
        "author": author,
        "id": name,
    }
    raise typer.Exit(feedback_command.feedback(config, endpoint, key, said, as_json=as_json))
