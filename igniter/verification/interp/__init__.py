"""Interpreters, on numpy, of the levels without a runtime of their own."""
