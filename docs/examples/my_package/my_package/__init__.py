"""An example of a package outside Igniter that adds an op, a pattern, a pass and a pipeline to it."""
