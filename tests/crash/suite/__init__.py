"""The crash suite: random schedules of real kills, counted at the provider. See tests/crash/README.md."""
