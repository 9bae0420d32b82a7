"""`igniter kernel`: one kernel in several schedules."""
