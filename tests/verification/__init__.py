"""Verification itself: what it must find, and what it must let pass."""
