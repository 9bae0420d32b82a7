"""`igniter diff`: the difference of two models, in structure, weights and results."""
