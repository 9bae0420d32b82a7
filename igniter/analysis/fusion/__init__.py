"""Analyses of the `fusion` level: which nodes become a region, which regions a program, and what that gains."""
