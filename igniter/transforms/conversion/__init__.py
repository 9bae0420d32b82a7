"""Passes that lower from one level to the next."""
