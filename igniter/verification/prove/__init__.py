"""Proofs for all sizes: a pass keeps the meaning of a kernel (docs/explanation/proofs.md)."""
