"""Schedules of nests: authors, their templates, and the cost models and search space behind them."""
