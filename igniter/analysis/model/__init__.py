"""Analyses of a model for the toolbox: pure functions over its graphs, after `infer-shapes`, with frozen results."""
