"""The only writer of delivery state. Nothing here can reach what runs a tool: redeliver, never re-run."""
