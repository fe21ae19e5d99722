"""Embedded: the same load and the same reckoning for ``tracegrade up``, which is told to end and started again (F20)."""

import asyncio
import signal
import time
from contextlib import ExitStack
from pathlib import Path

from faults.lasting import lasting
from faults.ledger import GATE, PAGER, PROJECT, Ledger
from faults.load import WHOLE, Load, Sender
from faults.oracle import check
from faults.outside import Outside
from faults.processes import END_S
from faults.rig import CONFIG, SEED
from serving import Up, an_up, eventually, get

from pipeline.config.load import load
from pipeline.judges.scripted import MODEL

LOADED_S = 5.0
"""How long it works before it is told to end."""
NOBODY = "http://127.0.0.1:9"
"""Where nobody listens, until there is somebody who does."""
EMBEDDED = """
project: {project}
store: {{path: {data}}}
receiver: {{http_port: 0, grpc_port: 0, project: {project}}}
"""


def assert_up_ends_with_nothing_lost(folder: Path, times: int) -> None:
    """SIGTERM under load, so many times: what was answered with success is stored, and what follows from it as well."""
    config = folder / "tracegrade.yaml"
    sender, took = Sender(NOBODY, Ledger()), []
    with Outside() as outside, ExitStack() as last:
        own = CONFIG.format(judge=outside.judge.url, model=MODEL, gate=GATE, pager=PAGER, url=outside.pager.url, gates="")
        config.write_text(EMBEDDED.format(project=PROJECT, data=folder / "data") + own)
        with Load(sender, traces_per_s=20.0, seed=SEED):
            for one in range(times):
                with an_up(config, folder / "data") as up:
                    took.append(_ends(up, sender, f"deleter-{one}"))
            up = last.enter_context(an_up(config, folder / "data"))
            sender.url = up.http
        eventually(lambda: _is_done(up, sender.ledger) and sender.ledger.due() <= set(outside.pager.told))
        took.append(up.ends(signal.SIGTERM))
        counts = asyncio.run(check(load(config), sender.ledger, outside.pager.told))
    assert max(took) <= END_S
    print(f"\nup ended within {[round(one, 2) for one in took]} s; {counts}; answers: {dict(sender.answers)}")  # noqa: T201


def _ends(up: Up, sender: Sender, agent: str) -> float:
    sender.url = up.http
    sender.send(sender.ledger.trace(agent, fails=True), *WHOLE)
    lasting(LOADED_S)
    began = time.monotonic()
    seconds = up.ends(signal.SIGTERM)
    assert up.process.returncode == 0
    hung_up = [one for one in sender.between(began - 1.0, began - 0.05) if one.status == 0]
    assert not hung_up, f"requests in flight got no answer: {hung_up}"
    return seconds


def _is_done(up: Up, ledger: Ledger) -> bool:
    accounting = get(f"{up.http}/api/accounting").json
    return accounting["received"] == len(ledger.traces) and not accounting["pending"] and not accounting["open_traces"]
