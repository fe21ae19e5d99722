"""The command line: names, options and help. What a person can fix is one sentence and exit code 2."""

import os
import sys
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Final

import typer

from pipeline.apps import (
    commands,
    conversation_commands,
    demo_command,
    doctor_command,
    explain_command,
    key_command,
    verify_commands,
)
from pipeline.apps.cli_gate import gate
from pipeline.apps.cli_judge import judge
from pipeline.apps.cli_letters import letters
from pipeline.apps.cli_options import AsJson, Config, Limit, OneAgent, OneFlag
from pipeline.apps.cli_quality import sums
from pipeline.apps.cli_send import sends
from pipeline.apps.cli_verdict import verdicts
from pipeline.apps.logs import LEVELS, log_to_stderr
from pipeline.apps.text import visible
from pipeline.errors import ConfigurationError, TemporaryError

app = typer.Typer(
    name="tracegrade",
    help="Grade AI agents in production, from their OpenTelemetry spans.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
HERE: Final = ("localhost", "127.0.0.1", "::1")
golden = typer.Typer(help="Failures that become tests.", no_args_is_help=True)
app.add_typer(golden, name="golden")
topics = typer.Typer(help="Where records travel between processes: the topics of a Kafka cluster.", no_args_is_help=True)
app.add_typer(topics, name="topics")

app.add_typer(letters, name="dead-letters")
app.add_typer(verdicts)
app.add_typer(sums)
app.add_typer(sends)
app.add_typer(judge, name="judge")
app.add_typer(gate, name="gate")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tracegrade {version('tracegrade')}")
        raise typer.Exit


@app.callback()
def _before(
    level: Annotated[str, typer.Option("--log-level", help=f"{', '.join(LEVELS)}.")] = "info",
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    if level.lower() not in LEVELS:
        raise ConfigurationError(f"--log-level is {level!r}; write one of {', '.join(LEVELS)}")
    log_to_stderr(level)


@app.command()
def up(config: Config = None) -> None:
    """Run everything in one process: receive spans, grade runs, watch gates, serve the status page."""
    raise typer.Exit(commands.up(config))


@app.command()
def collector(config: Config = None) -> None:
    """Receive spans and put them on Kafka, as one of any number of collectors."""
    raise typer.Exit(commands.collector(config))


@app.command()
def bridge(config: Config = None) -> None:
    """Carry spans that OpenTelemetry Collectors wrote to Kafka onto tracegrade's topic, as one of any number of bridges."""
    raise typer.Exit(commands.bridge(config))


@app.command()
def worker(
    config: Config = None,
    stages: Annotated[str, typer.Option(help="Which stages to work on, with commas between them.")] = "assemble,judge,gate",
) -> None:
    """Grade what is on Kafka, as one of any number of workers on one ClickHouse server."""
    raise typer.Exit(commands.worker(config, stages))


@app.command()
def demo(
    traces: Annotated[Path | None, typer.Option(help="A folder of recorded traces; the bundled ones by default.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Keep the data in this folder, to look around in afterwards.")] = None,
) -> None:
    """Grade the bundled traces with a scripted judge, on a temporary folder, and print the scoreboard."""
    raise typer.Exit(demo_command.demo(traces, keep))


@app.command()
def explain(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Recorded traces in any shape that replay takes, and OTLP log records beside them."),
    ] = None,
    run_id: Annotated[str, typer.Option("--run", metavar="ID", help="Explain the trace of this stored run instead.")] = "",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show how traces are understood: by which dialect each span is read, what is missing, what the runs look like."""
    raise typer.Exit(explain_command.explain(files or [], config, run_id, as_json=as_json))


@app.command()
def scoreboard(
    config: Config = None,
    limit: Limit = 50,
    agent: OneAgent = "",
    flag: OneFlag = "",
    as_json: AsJson = False,
) -> None:
    """Show the latest runs and what became of all of them."""
    raise typer.Exit(commands.scoreboard(config, limit, agent, flag, json=as_json))


@app.command()
def run(
    run_id: Annotated[str, typer.Argument(help="The run's id, or as much of its beginning as is unique.")],
    config: Config = None,
    part: Annotated[str | None, typer.Option("--part", help="Only what this sub-agent did, by its path in the run.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show all that is known of one run."""
    raise typer.Exit(commands.run(config, run_id, part, json=as_json))


@app.command()
def verify(
    run_id: Annotated[
        str, typer.Argument(help="The run's id, or as much of its beginning as is unique; without one the latest runs.")
    ] = "",
    config: Config = None,
    limit: Limit = 1000,
    as_json: AsJson = False,
) -> None:
    """Make stored scores again from what is stored of their runs, and say what is not equal; exit code 1 if anything is not."""
    raise typer.Exit(verify_commands.verify(config, run_id, limit, json=as_json))


@app.command()
def conversations(config: Config = None, limit: Limit = 50, agent: OneAgent = "", as_json: AsJson = False) -> None:
    """Show the conversations that ended last, each with what its runs add up to."""
    raise typer.Exit(conversation_commands.conversations(config, limit, agent, json=as_json))


@app.command()
def conversation(
    conversation_id: Annotated[str, typer.Argument(metavar="ID", help="The conversation's id, as its runs name it.")],
    config: Config = None,
    limit: Limit = 1000,
    as_json: AsJson = False,
) -> None:
    """Show one conversation: what its runs add up to, and its turns in order."""
    raise typer.Exit(conversation_commands.conversation(config, conversation_id, limit, json=as_json))


@app.command()
def check(
    config: Annotated[Path | None, typer.Argument(help="The file to check; ./tracegrade.yaml by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Explain what is wrong with a configuration, by line, or what it comes to."""
    raise typer.Exit(commands.check(config, json=as_json))


@app.command()
def doctor(config: Config = None, as_json: AsJson = False) -> None:
    """Look whether what the configuration names is there and works: store, brokers, judge. Asks the judge one question."""
    raise typer.Exit(doctor_command.doctor(config, json=as_json))


@golden.command("export")
def golden_export(
    folder: Annotated[Path, typer.Argument(help="Folder to write golden-PROJECT.jsonl into.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Write the golden cases as JSON lines, one case a line."""
    raise typer.Exit(commands.golden_export(config, folder, json=as_json))


@topics.command("create")
def topics_create(config: Config = None, as_json: AsJson = False) -> None:
    """Declare the topics on the cluster; those that exist keep their partitions and records."""
    raise typer.Exit(commands.topics_create(config, json=as_json))


@app.command()
def lag(config: Config = None, as_json: AsJson = False) -> None:
    """Show how far each stage is behind on each partition, and which worker has it."""
    raise typer.Exit(commands.lag(config, json=as_json))


@app.command()
def key(
    project: Annotated[str, typer.Argument(help="The project whose spans it is for.")] = "default",
    as_json: AsJson = False,
) -> None:
    """Make an API key: the key for agents, and its digest for the configuration."""
    raise typer.Exit(key_command.key(project, as_json=as_json))


@app.command("scripted-judge")
def scripted_judge(
    host: Annotated[str, typer.Option(help="Address to listen on; it asks nobody for a key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 for any.")] = 8790,
) -> None:
    """Serve an OpenAI-compatible judge of fixed rules, to try things out. It is no judge of quality."""
    raise typer.Exit(commands.scripted_judge(host, port))


@app.command()
def bench(
    traces: Annotated[int, typer.Option(min=10, help="Traces of ten spans each.")] = 2000,
    as_json: AsJson = False,
) -> None:
    """Measure spans and runs a second against bare decoding, in one run."""
    raise typer.Exit(commands.bench(traces, json=as_json))


def main() -> None:
    """Run a command; what a person can fix ends it with a sentence, not a traceback."""
    _prepare()
    try:
        app(standalone_mode=True)
    except ConfigurationError as error:
        typer.echo(visible(f"tracegrade: {error}"), err=True)
        sys.exit(2)
    except TemporaryError as error:
        typer.echo(visible(f"tracegrade: {error}; try again"), err=True)
        sys.exit(75)


def _prepare() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a letter shows another one
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its C core writes to stderr by itself what its errors say again
    for name in ("no_proxy", "NO_PROXY"):  # a proxy does not lead back to this machine
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), *HERE)))
