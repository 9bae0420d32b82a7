"""What is known of a whole model: pure functions over its IR that return frozen data."""
