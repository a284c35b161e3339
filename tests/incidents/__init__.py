"""What went wrong elsewhere, as scenarios on the real ledger: one file per incident, named by its id.

Each file tells what happened in one line, names its *kind*, and says where domain.md decides otherwise than
the report asked. It tests the kind: the example, its variants and its neighbours.

    python -m pytest tests/incidents --collect-only -q      # the list, by id
"""

from __future__ import annotations

from collections.abc import Mapping

INCIDENTS: Mapping[str, str] = {
    "r01": "the same call under two names",
}
"""Every incident that has a file here, and the kind it stands for."""
