"""Explain: recorded traces as tracegrade understands them: which dialect read each span and why, what nobody used, what the runs look like."""
