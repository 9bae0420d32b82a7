"""`igniter edit`: changes at the user's request, one pass each."""
