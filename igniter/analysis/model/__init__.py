"""What the toolbox says of a model: pure functions over a module that return frozen dataclasses."""
