"""`igniter extract`: a part of a model as a model."""
