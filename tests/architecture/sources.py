"""The product's own source files as syntax trees."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("config", "ledger", "review", "dashboard")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    path: Path

    @property
    def name(self) -> str:
        """The path below the checkout, with slashes."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    def imported_modules(self) -> Iterator[str]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module

    def at(self, node: ast.AST) -> str:
        return f"{self.name}:{getattr(node, 'lineno', 0)}"


@lru_cache
def product_sources() -> tuple[Source, ...]:
    """Every module of the product; migrations are generated and left out."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return tuple(Source(path) for path in paths if "migrations" not in path.parts)


@lru_cache
def sources_of_tests() -> tuple[Source, ...]:
    return tuple(Source(path) for path in sorted((ROOT / "tests").rglob("*.py")))


def below(*prefixes: str) -> tuple[Source, ...]:
    """Product modules whose path starts with one of `prefixes`."""
    return tuple(source for source in product_sources() if source.name.startswith(prefixes))


def outside(*prefixes: str) -> tuple[Source, ...]:
    return tuple(source for source in product_sources() if not source.name.startswith(prefixes))
