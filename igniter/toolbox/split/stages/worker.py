"""A process that runs the models of one place: started by `workers`, connected to it by a socket.

    python -m igniter.toolbox.split.stages.worker ADDRESS MODEL [MODEL ...]

The key of the connection, and the number of threads of a session, are in the environment. A request is (model, inputs);
the answer is the outputs by name, or the text of an error.
"""

from __future__ import annotations

import os
import sys
from multiprocessing.connection import Client
from typing import Any

from igniter.toolbox.split.stages.running import local_caller

KEY = "IGNITER_STAGE_KEY"
THREADS = "IGNITER_STAGE_THREADS"
READY = "ready"


def main(address: str, models: list[str]) -> None:
    """Loads the models, and runs them until the connection ends."""
    connection: Any = Client(address, authkey=bytes.fromhex(os.environ.pop(KEY)))
    try:
        threads = int(os.environ.get(THREADS, "0"))
        call = local_caller(models, intra_op_num_threads=threads)
    except Exception as error:  # the parent reports any error
        connection.send(("error", str(error)))
        return
    connection.send((READY, os.getpid()))
    while True:
        try:
            index, values = connection.recv()
        except EOFError:
            return
        try:
            connection.send(("done", call(index, values)))
        except Exception as error:  # as above
            connection.send(("error", str(error)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
