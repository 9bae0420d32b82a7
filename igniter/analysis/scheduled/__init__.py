"""Analyses of the scheduled `loop` level: accesses and costs of loops."""
