"""The verbs: pure functions and state machines. No clock, no chance, no I/O."""
