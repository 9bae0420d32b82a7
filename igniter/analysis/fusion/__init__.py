"""Analyses of the `fusion` level: the formation of regions and programs, and their gain."""
