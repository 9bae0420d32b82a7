"""Search of schedules by measurement: the candidates (`search.py`), their timing (`measure.py`), and its place
(`executors.py`).

The schedule language determines the legal schedules, the structured interpreter the semantics of a kernel, the cost
model and Optuna the next candidate: nothing here contains knowledge of good schedules.
"""
