"""Passes over the `fusion` level."""
