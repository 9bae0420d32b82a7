"""Interpreters, on numpy, of the levels that have no runtime of their own."""
