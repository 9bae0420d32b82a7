"""Kernels as text for stock MLIR."""
