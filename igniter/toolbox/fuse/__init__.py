"""`igniter fuse`: replacement of a pattern of nodes by one node."""
