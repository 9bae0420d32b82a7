"""`igniter compress`: weights in fewer bits."""
