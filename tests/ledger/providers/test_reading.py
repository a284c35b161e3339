"""The next page's address in a Link header, however a provider writes it."""

import pytest

from ledger.providers.reading import Unreadable, next_in


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("", ""),
        ('<https://p.test/2>; rel="next"', "https://p.test/2"),
        ("<https://p.test/2>;rel=next", "https://p.test/2"),
        ('</x?page=2&a=1,2>; title="a, b"; rel="next"', "/x?page=2&a=1,2"),
        ('<a>; rel="prev", <b>; rel="next", <c>; rel="last"', "b"),
        ('<a>; rel="last next"', "a"),
        ('<a>; REL="NEXT"', "a"),
        ('<a>; rel="prev"; title="next"', ""),
        ('<a>; rel="next-archive"', ""),
        ("<a>; rel=nextish", ""),
    ],
)
def test_the_next_address(link: str, address: str) -> None:
    assert next_in(link) == address


@pytest.mark.parametrize("link", ["next", "https://p.test/2; rel=next"])
def test_what_is_no_link_is_unreadable(link: str) -> None:
    with pytest.raises(Unreadable):
        next_in(link)
