"""The demonstration: sample people, a provider of its own process, and an agent killed on purpose."""
