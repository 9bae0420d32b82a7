"""An example of a package outside Igniter that adds an op, a pattern, a pass, a pipeline and a fusion author to it."""
