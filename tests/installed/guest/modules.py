"""Imports every module of the installed package. `igniter.torch` needs its extra, and says so without it."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from importlib.util import find_spec
from pathlib import Path


def main() -> int:
    import igniter
    from igniter.errors import IgniterError

    home = Path(igniter.__file__).parents[1]
    if home.name != "site-packages":
        print(f"igniter is imported from {home}, which is no installed package")
        return 1
    count, faults = 0, []
    for found in pkgutil.walk_packages(igniter.__path__, "igniter.", onerror=lambda name: None):
        count += 1
        try:
            importlib.import_module(found.name)
        except Exception as error:
            asks = isinstance(error, IgniterError) and "onnx-igniter[torch]" in error.message
            if not (asks and found.name.startswith("igniter.torch") and find_spec("torch") is None):
                faults.append(f"{found.name}: {type(error).__name__}: {error}")
    print(*faults, sep="\n")
    print(f"{count} modules, {len(faults)} that are not imported")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
