"""Ways in: OTLP, recorded traces, and the dialects that agents speak."""
