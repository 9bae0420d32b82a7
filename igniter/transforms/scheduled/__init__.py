"""Passes over the scheduled `loop` level."""
