"""The benchmark: what a span costs on this machine, beside the floor of bare decoding in the same run."""

from pipeline.apps.bench.measure import Report, measure

__all__ = ["Report", "measure"]
