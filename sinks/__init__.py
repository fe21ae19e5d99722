"""Ways out: ClickHouse, golden set files, alerts."""
