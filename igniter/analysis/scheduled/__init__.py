"""Analyses of the scheduled `loop` level: what loops touch and what they cost."""
