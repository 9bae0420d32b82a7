"""Models of NNSmith, a generator of another project, against ONNX Runtime.

NNSmith wants versions of torch and onnx of its own, so it runs in an environment of its own:

    python -m venv /tmp/nnsmith
    /tmp/nnsmith/bin/pip install 'nnsmith[torch,onnx]' 'torch==2.3.1' 'numpy<2' 'onnx==1.16.2'
    python -m tests.fuzz.nnsmith --python /tmp/nnsmith/bin/python --count 300

`make_models` is the part that runs there.
"""
