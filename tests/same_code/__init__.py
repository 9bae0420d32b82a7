"""The proof that a change of the compiler's structure changes none of its code."""
