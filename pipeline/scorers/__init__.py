"""Checks in code: every run, before any model is asked. One subject a file; ``registry`` lists them."""

from pipeline.scorers.check import Check, Finding, Missing
from pipeline.scorers.registry import ChecksSettings, checks

__all__ = ["Check", "ChecksSettings", "Finding", "Missing", "checks"]
