"""The toolbox: one package for each verb, with its analyses, passes and rendering (`docs/reference/toolbox.md`)."""
