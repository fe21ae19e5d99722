"""What runs the stages: owners that hold state, and the runtimes that feed them."""
