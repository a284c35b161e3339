"""The crash suite: random schedules of real kills, counted at the provider. tests/crash/README.md explains it."""
