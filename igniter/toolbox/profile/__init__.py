"""`igniter profile`: operations, bytes and parameters by node, and the expected time on a device."""
