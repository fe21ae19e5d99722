"""Ways out for notifications."""
