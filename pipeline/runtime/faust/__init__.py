"""Faust: workers over Kafka. The one package that knows it (docs/adr/0005)."""
