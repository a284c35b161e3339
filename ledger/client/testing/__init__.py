"""Kill your own agent at the boundaries where agents die, and count what the far side did.

    with CountingProvider(tmp_path) as provider:
        run_agent("agent.py", kill_at=Boundary.WHILE_SENDING, provider=provider)  # dies, and really
        run_agent("agent.py")                                                     # the restart
        assert provider.effects() == 1

For tests only: nothing here is reachable from an agent that is not started by `run_agent`.
"""

from ledger.client.testing.boundaries import Boundary
from ledger.client.testing.counting import CountingProvider, Effect
from ledger.client.testing.running import Ended, run_agent

__all__ = ["Boundary", "CountingProvider", "Effect", "Ended", "run_agent"]
