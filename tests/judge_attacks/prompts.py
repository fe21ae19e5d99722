"""A prompt as it is sent, and what of it stands in no section."""

from judge_attacks.cases import NONCE

from pipeline.config.rubrics import load
from pipeline.judges.prompt import build
from pipeline.judges.transcript import document
from pipeline.model.run import Run

_CRITERIA = load("criteria")


def messages_about(run: Run) -> list[str]:
    """The messages of one call."""
    return [message.text for message in build(_CRITERIA, "grounded", document(run), NONCE)]


def asked_about(run: Run) -> str:
    """The one that holds the data."""
    return messages_about(run)[1]


def outside(prompt: str) -> list[str]:
    """The lines that stand in no section, and those that bound the sections, as they are found by splitting at line feeds alone."""
    found, within = [], ""
    for line in prompt.split("\n"):
        words = line.split(" ")
        if words == ["===", "END", "DATA", NONCE, within, "==="]:
            within = ""
        if not within:
            found.append(line)
        if words[:4] == ["===", "BEGIN", "DATA", NONCE]:
            within = words[4]
    return found
