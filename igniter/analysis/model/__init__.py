"""Analyses of a whole model, which the toolbox shows: pure functions over a module that return frozen data."""
