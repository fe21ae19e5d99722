"""Ways out for golden cases."""
