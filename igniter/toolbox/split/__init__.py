"""`igniter split`: pipeline stages and ranks, and their execution."""
