"""Rules of `form-integer-products` and `hoist-zero-points` for more than products of matrices."""
