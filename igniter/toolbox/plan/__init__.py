"""`igniter plan`: the memory of a run, by node and by address."""
