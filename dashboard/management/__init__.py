"""Commands that need samples or rights of people, and the demonstration they start."""
