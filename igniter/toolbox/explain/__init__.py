"""`igniter explain`: what differs between two compilations of a model, and how much of the time each part explains."""
