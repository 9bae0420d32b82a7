"""An example of a package outside Igniter that adds an op, a pattern, passes, a pipeline, authors of fusion and of
schedules, a micro-kernel and a backend to it."""
