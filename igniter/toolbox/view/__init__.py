"""`igniter view`: a page with the graph of a model."""
