"""Runs two compiled models in one process, without Igniter: `pip install onnxruntime numpy` is all that it needs.

python run.py FIRST.igniter SECOND.igniter INPUT OUTPUT

The models have one input f32[rows, columns] and one output. INPUT has the rows of the first model's input, as floats of
this machine. OUTPUT gets three results: of the first model, of the first model with IO binding, and of the second
model, whose input is the first model's output.
"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort


def open_model(folder: str, with_library: bool = True) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    # Two threads for this session, which sleep between runs. Newer versions of ONNX Runtime share one pool between
    # sessions: ort.set_global_thread_pool_sizes(2, 1), and options.use_per_session_threads = False.
    options.intra_op_num_threads = 2
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if with_library:
        for library in Path(folder).glob("libigniter_*.so"):
            options.register_custom_ops_library(str(library))
    return ort.InferenceSession(str(Path(folder) / "model.onnx"), options, providers=["CPUExecutionProvider"])


def run_bound(session: ort.InferenceSession, given: np.ndarray, into: np.ndarray, times: int) -> None:
    """Binds the buffers once; each run reads the one and writes the other, without a copy or an allocation."""
    binding = session.io_binding()
    binding.bind_input(session.get_inputs()[0].name, "cpu", 0, np.float32, given.shape, given.ctypes.data)
    binding.bind_output(session.get_outputs()[0].name, "cpu", 0, np.float32, into.shape, into.ctypes.data)
    for _ in range(times):
        session.run_with_iobinding(binding)


def main(first_folder: str, second_folder: str, given: str, output: str) -> None:
    first, second = open_model(first_folder), open_model(second_folder)
    (x,) = first.get_inputs()
    data = np.fromfile(given, np.float32).reshape(-1, x.shape[1])
    (middle,) = first.run(None, {x.name: data})
    print("first:", " x ".join(map(str, middle.shape)))
    buffer = np.empty_like(middle)
    run_bound(first, data, buffer, 3)
    (last,) = second.run(None, {second.get_inputs()[0].name: middle})
    print("second:", " x ".join(map(str, last.shape)))
    with open(output, "wb") as file:
        for array in (middle, buffer, last):
            file.write(array.tobytes())
    # Without its library the model does not load, and the message names the file to register.
    try:
        open_model(first_folder, with_library=False)
    except Exception as error:  # the errors of onnxruntime have no common base
        print("not registered:", error)
    try:
        first.run(None, {x.name: data[1:, 1:]})
    except Exception as error:
        print("wrong input:", error)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
