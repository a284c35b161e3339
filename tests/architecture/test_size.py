"""A file is read in one sitting, a function at one glance."""

from tests.architecture.sources import Function, product_sources, sources_of_tests

LONGEST_FILE = 400
LONGEST_FUNCTION = 60


def test_no_file_is_long() -> None:
    sources = (*product_sources(), *sources_of_tests())
    lengths = {source.name: len(source.text.splitlines()) for source in sources}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_no_function_is_long() -> None:
    found = [
        f"{source.at(function)} {function.name}: {lines_of(function)} lines"
        for source in (*product_sources(), *sources_of_tests())
        for function in source.functions()
        if lines_of(function) > LONGEST_FUNCTION
    ]
    assert found == []


def lines_of(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1
