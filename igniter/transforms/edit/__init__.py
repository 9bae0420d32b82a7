"""What changes a model because a user asks for it, one pass a file (docs/toolbox.md)."""
