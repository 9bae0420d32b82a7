"""What the toolbox knows of a model: pure functions over its graphs, after `infer-shapes`, that return frozen data."""
