"""No incident of the list is without its file, and no file without its line in the list."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tests.incidents import INCIDENTS


def test_every_incident_has_its_file() -> None:
    names = [path.stem for path in Path(__file__).parent.glob("test_r*.py")]
    found = Counter(match[1] for name in names if (match := re.fullmatch(r"test_(r\d{2,3})_\w+", name)))
    assert found == Counter(INCIDENTS.keys())
    assert list(INCIDENTS) == sorted(INCIDENTS, key=lambda incident: int(incident[1:]))


def test_each_file_begins_with_its_id_and_names_its_kind() -> None:
    for path in Path(__file__).parent.glob("test_r*.py"):
        text = path.read_text()
        assert text.startswith(f'"""{path.stem.split("_")[1].upper()}: '), path.name
        assert "\nKind: " in text, path.name
