"""`python -m tests.checks`: every check of this code, one after the other; all of them run, whatever fails.

`--no-tests` leaves out the test suite. Exit code 1 where any check failed.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = Path(sys.executable).parent


@dataclass(frozen=True)
class Check:
    name: str
    command: list[str]

    def passes(self) -> bool:
        print(f"── {self.name}", flush=True)
        started_at = time.monotonic()
        passed = subprocess.run(self.command, cwd=ROOT, check=False).returncode == 0
        verdict = "ok" if passed else "FAILED"
        print(f"── {self.name}: {verdict} ({time.monotonic() - started_at:.0f} s)", flush=True)
        return passed


def checks(*, with_tests: bool) -> Iterator[Check]:
    yield Check("format", [program("ruff"), "format", "--check", "."])
    yield Check("lint", [program("ruff"), "check", "."])
    yield Check("types", [program("mypy")])
    yield Check("walls", [program("lint-imports")])
    yield Check("template format", [program("djade"), "--target-version", "5.2", "--check", *templates()])
    yield Check("template lint", [program("djlint"), "--lint", "--quiet", "templates"])
    if with_tests:
        yield Check("tests", [sys.executable, "-m", "pytest"])


def program(name: str) -> str:
    return str(PROGRAMS / name)


def templates() -> list[str]:
    return [str(path) for path in sorted((ROOT / "templates").rglob("*.html"))]


def main() -> None:
    failed = [check.name for check in checks(with_tests="--no-tests" not in sys.argv) if not check.passes()]
    sys.exit(f"Failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
