"""Analyses of the structured `loop` level: contractions, bounds, and the authors of schedules."""
