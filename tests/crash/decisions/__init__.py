"""Everything that people press, and the facts that come early: each as one press that can be made, and
killed, in another process."""

from __future__ import annotations

from collections.abc import Mapping

from tests.crash.decisions.access import ACCESS
from tests.crash.decisions.agents import AGENTS
from tests.crash.decisions.case import About, Case
from tests.crash.decisions.deliveries import DELIVERIES
from tests.crash.decisions.facts import FACTS
from tests.crash.decisions.items import ITEMS
from tests.crash.decisions.ownership import OWNERSHIP
from tests.crash.decisions.set_up import SETUP

CASES: Mapping[str, Case] = {**ITEMS, **OWNERSHIP, **ACCESS, **AGENTS, **SETUP, **DELIVERIES, **FACTS}

__all__ = ("CASES", "About", "Case")
