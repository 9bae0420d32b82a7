"""The report of a compiled model: what it is made of (`gather`), the graph as data (`graph`), charts, and the page."""
