"""Finding schedules by measuring: what is tried (`search.py`), how it is timed (`measure.py`), where (`executors.py`).

What is legal the language says, what a kernel means the structured interpreter, and what is tried next the cost model
and Optuna: nothing here knows what a good schedule is.
"""
