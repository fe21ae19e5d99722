"""Estimates and intervals. Plain numbers in, plain numbers out; nothing here knows what was measured."""
