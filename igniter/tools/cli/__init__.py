"""The commands of `igniter`, one a file; `igniter.tools.main` puts them together."""
