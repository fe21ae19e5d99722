"""Configuration: ``tracegrade.yaml`` in, composed settings out. What can be configured is declared beside what it configures."""
