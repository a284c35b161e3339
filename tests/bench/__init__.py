"""Benchmarks: one command each, printing a table. Nothing here is asserted, and no test runs them."""
