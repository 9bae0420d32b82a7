"""`igniter schedule`: schedules with names, versions and hashes, moved between files and databases."""
