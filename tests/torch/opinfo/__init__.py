"""PyTorch's own database of ops, `op_db`, through both ways into Igniter, beside eager.

`python -m tests.torch.opinfo --help` is the command; `docs/how-to/torch.md` says what it runs.
"""
