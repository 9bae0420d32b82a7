"""The toolbox: one package for each verb, with its analyses, its passes and its rendering (`docs/toolbox.md`)."""
