"""Passes that lead from one level to the next."""
