"""The demo: recorded traces of real frameworks through the whole pipeline, with a judge of fixed rules."""
