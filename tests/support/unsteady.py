"""`python -m tests.support.unsteady REPORT`: name what failed; red where it is too much to be an accident.

REPORT is what pytest's --junit-xml wrote. CI asks so few once more, alone, and says who they were: what fails
beside others and not alone is a defect of the test or of the product, found, but not held against the change
at hand.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.support.skipped import name_of

AT_MOST = 2


def main(report: Path) -> None:
    failed = [name_of(case) for case in ET.parse(report).iter("testcase") if has_failed(case)]  # noqa: S314
    if not failed or len(failed) > AT_MOST:
        sys.exit(f"{len(failed)} tests failed.")
    print("UNSTEADY, asked once more alone: " + ", ".join(failed))


def has_failed(case: ET.Element) -> bool:
    return any(case.find(end) is not None for end in ("failure", "error"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
