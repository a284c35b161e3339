"""`python -m tests.support.skipped REPORT`: red where a test of the browser was skipped, or none ran.

REPORT is what pytest's --junit-xml wrote.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree as ET


def main(report: Path) -> None:
    cases = [case for case in ET.parse(report).iter("testcase") if is_of_the_browser(case)]  # noqa: S314
    skipped = [name_of(case) for case in cases if case.find("skipped") is not None]
    if skipped:
        sys.exit("Skipped: " + ", ".join(skipped))
    if not cases:
        sys.exit("No test of the browser ran.")
    print(f"All {len(cases)} tests of the browser ran.")


def is_of_the_browser(case: ET.Element) -> bool:
    return case.get("classname", "").startswith("tests.browser")


def name_of(case: ET.Element) -> str:
    return f"{case.get('classname')}.{case.get('name')}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
