"""What the processes started here have in common."""

import os
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parents[3]


def environment_of_children(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment and `extra`; they import the same client as this process does."""
    path = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), **(extra or {})}
