"""`igniter bench`: the measured time of nodes and programs."""
