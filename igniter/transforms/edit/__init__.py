"""Passes that change a model as a user asks for it: the toolbox's verbs."""
