"""What people start: the command line, the pipeline in one process, its API and status page, the demo."""
