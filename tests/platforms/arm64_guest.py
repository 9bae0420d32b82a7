"""Runs in the arm64 root, on numpy and stock ONNX Runtime only: answers jobs from the standard input until it ends.

A job and its answer are pickles with their length before them. A job has `model`, `libraries`, `feed`, `threads` and
`runs`; the answer has `outputs`, or `error`. Types missing in numpy travel as ("raw", element type, shape, bytes).
"""

import ctypes
import pickle
import struct
import sys
import time

import numpy as np
import onnxruntime as ort

RAW = "raw"


def fed(value):
    if isinstance(value, tuple) and len(value) == 4 and value[0] == RAW:
        _, code, shape, data = value
        made = ort.OrtValue.ortvalue_from_shape_and_type(list(shape), code)
        ctypes.memmove(made.data_ptr(), data, len(data))
        return made
    return value


def answer(job):
    options = ort.SessionOptions()
    options.intra_op_num_threads = job.get("threads", 1)
    options.log_severity_level = 4
    for name, value in job.get("config", {}).items():
        options.add_session_config_entry(name, value)
    for library in job["libraries"]:
        options.register_custom_ops_library(library)
    session = ort.InferenceSession(job["model"], options, providers=["CPUExecutionProvider"])
    feed = {name: fed(value) for name, value in job["feed"].items()}
    names = [o.name for o in session.get_outputs()]
    raw = {o.name: o.type for o in session.get_outputs()}
    seconds, outputs = [], []
    for _ in range(job.get("runs", 1)):
        started = time.perf_counter()
        if any(isinstance(v, ort.OrtValue) for v in feed.values()) or job.get("values"):
            given = {
                n: v if isinstance(v, ort.OrtValue) else ort.OrtValue.ortvalue_from_numpy(np.asarray(v))
                for n, v in feed.items()
            }
            made = session.run_with_ort_values(names, given)
            outputs = [
                (RAW, raw[n], tuple(v.shape()), ctypes.string_at(v.data_ptr(), v.tensor_size_in_bytes()))
                if n in job.get("values", ())
                else v.numpy()
                for n, v in zip(names, made, strict=True)
            ]
        else:
            outputs = session.run(None, feed)
        seconds.append(time.perf_counter() - started)
    return {"outputs": outputs, "seconds": seconds}


def main():
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while True:
        size = source.read(8)
        if len(size) < 8:
            return
        job = pickle.loads(source.read(struct.unpack("<q", size)[0]))
        try:
            found = answer(job)
        except Exception as error:  # ONNX Runtime's errors have no common base
            found = {"error": f"{type(error).__name__}: {error}"}
        data = pickle.dumps(found, protocol=4)
        sink.write(struct.pack("<q", len(data)) + data)
        sink.flush()


if __name__ == "__main__":
    ort.set_default_logger_severity(4)
    main()
