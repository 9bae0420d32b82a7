"""An example of a package outside Igniter that adds an op, a pattern, a pass, a pipeline, a fusion author and a
micro-kernel to it."""
