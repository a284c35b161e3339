"""Tell a consumer's author what their endpoint does wrong with duplicates, forgeries, lateness and crashes.

    python -m ledger.client.conformance --url URL --secret whsec_… --effects-url URL --start COMMAND

For tests: it sends made-up results and kills the consumer it starts.
"""

from ledger.client.conformance.effects import FileEffects, UrlEffects
from ledger.client.conformance.findings import Check, Fault, Report
from ledger.client.conformance.running import check_consumer
from ledger.client.conformance.wire import ConsumerAway

__all__ = ["Check", "ConsumerAway", "Fault", "FileEffects", "Report", "UrlEffects", "check_consumer"]
