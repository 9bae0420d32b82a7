"""`igniter shapes`: dims as expressions, the shape engine, and the graph without nodes that compute shapes."""
