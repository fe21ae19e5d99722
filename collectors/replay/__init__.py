"""Replay: recorded traces as OTLP requests, sent through a real OTLP exporter.

Files in, requests out: read, retime, send. Each shape of file is one module; what tells the shapes apart is in :mod:`~collectors.replay.shapes`.
"""

from collectors.replay.recording import Recording, read, requests_of
from collectors.replay.retime import Times, retime
from collectors.replay.send import Protocol, Sender, SendReport, send

__all__ = ["Protocol", "Recording", "SendReport", "Sender", "Times", "read", "requests_of", "retime", "send"]
