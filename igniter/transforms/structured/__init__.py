"""Passes over the structured `loop` level."""
