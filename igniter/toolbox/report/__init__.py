"""The report of a compiled model: its data (`gather`), the graph as data (`graph`), charts, and the page."""
