"""Feedback without spans: ``POST /api/feedback``, by trace, run or conversation, also hours later."""
