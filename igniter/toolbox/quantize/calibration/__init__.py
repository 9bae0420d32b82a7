"""Calibration: the ranges of a model's values over samples, and the quantised model based on them."""
