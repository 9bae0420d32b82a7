"""`igniter machine`: figures of a machine, by measurement."""
