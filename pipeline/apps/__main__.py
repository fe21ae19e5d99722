"""``python -m pipeline.apps`` is ``tracegrade``."""

from pipeline.apps.cli import main

main()
