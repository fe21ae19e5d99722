"""What happens to a run, from its spans to its gates."""
