"""The components every page is made of: state, hash, time, marked text, icon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from dashboard.icons import (
    DELIVERY_ICONS,
    DELIVERY_WORDS,
    HEALTH_ICONS,
    HEALTH_WORDS,
    PATHS,
    STATE_ICONS,
    STATE_WORDS,
)
from ledger.rules.authority import AUTHORITY_WORDS, Reason
from ledger.rules.states import DeliveryState, State
from review.queries import ContentHash
from review.queries.destinations import Health
from review.queries.marked import Mark, Segment, marked_text
from review.queries.system import may_see_system
from review.queries.words import listed

register = template.Library()
register.filter("listed", listed)

AUTHORITY_CODES = frozenset(reason.value for reason in AUTHORITY_WORDS)

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@register.simple_tag
def icon(name: str) -> SafeString:
    """A drawing beside a word; hidden from those who hear the page."""
    return format_html(
        '<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false"><path d="{}"/></svg>',
        PATHS[name],
    )


@register.inclusion_tag("components/state.html")
def state_badge(state: str) -> dict[str, str]:
    known = State(state)
    return {"css": known.lower(), "icon": STATE_ICONS[known], "word": STATE_WORDS[known]}


@register.inclusion_tag("components/state.html")
def delivery_badge(state: str) -> dict[str, str]:
    known = DeliveryState(state)
    return {"css": known.lower(), "icon": DELIVERY_ICONS[known], "word": DELIVERY_WORDS[known]}


@register.inclusion_tag("components/state.html")
def health_badge(health: str) -> dict[str, str]:
    known = Health(health)
    return {"css": f"health-{known}", "icon": HEALTH_ICONS[known], "word": HEALTH_WORDS[known]}


@register.inclusion_tag("components/hash.html")
def content_hash(value: ContentHash | str) -> dict[str, str]:
    """First and last 8 digits; copying copies the whole."""
    found = value if isinstance(value, ContentHash) else ContentHash(value)
    return {"full": found.full, "short": found.short}


@register.simple_tag(takes_context=True)
def when(context: dict[str, Any], moment: datetime | None) -> SafeString:
    """A time as distance from `as_of`, when the page was read; the exact time is in its title."""
    if moment is None:
        return mark_safe("—")
    exact = moment.strftime("%Y-%m-%d %H:%M:%S UTC")
    as_of = context.get("as_of")
    words = distance(moment, as_of) if isinstance(as_of, datetime) else exact
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, words)


@register.simple_tag(takes_context=True)
def sees_system(context: dict[str, Any]) -> bool:
    """Whether the reader is in charge of a tenant, and so may open the System page."""
    return may_see_system(context["request"].user)


@register.filter
def of(words: Mapping[str, str], name: str) -> str:
    """The word for a name of a closed list."""
    return words[name]


@register.filter
def exact(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


@register.filter
def clock(moment: datetime) -> str:
    """The time of day, for what is at most a few hours away."""
    return moment.strftime("%H:%M UTC")


def distance(moment: datetime, as_of: datetime) -> str:
    """`3 min ago`, `in 2 h`, `now`."""
    seconds = (moment - as_of).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"in {span(seconds)}" if seconds > 0 else f"{span(-seconds)} ago"


@register.filter
def span(seconds: float) -> str:
    """A span in its largest unit, with the next one below ten: `45 s`, `3 min 20 s`, `2 h 5 min`, `12 d`."""
    whole = max(0, round(seconds))
    for index, (size, unit) in enumerate(_UNITS):
        if whole < size:
            continue
        count, rest = divmod(whole, size)
        below = index + 1 < len(_UNITS) and count < 10 and rest // _UNITS[index + 1][0]
        return f"{count} {unit}" + (f" {below} {_UNITS[index + 1][1]}" if below else "")
    return "0 s"


@register.filter
def marked(text: str | Iterable[Segment]) -> SafeString:
    """Text in which every character that could deceive is shown by its code; everything is escaped."""
    segments = marked_text(text) if isinstance(text, str) else text
    return format_html_join("", "{}", ((_shown(segment),) for segment in segments))


def _shown(segment: Segment) -> SafeString | str:
    if segment.mark is Mark.NONE:
        return segment.text
    return format_html(
        '<mark title="{}">{}<span class="visually-hidden"> {} character, {}</span></mark>',
        f"{segment.mark}: {segment.name}",
        segment.shown,
        segment.mark,
        segment.name,
    )


@register.filter
def in_words(reasons: Iterable[str]) -> str:
    """Reasons as sentences; authority's codes stay beside their words, as answers and events have them."""
    return " ".join(_in_words(reason) for reason in reasons)


def _in_words(reason: str) -> str:
    if reason not in AUTHORITY_CODES:
        return reason
    return f"{AUTHORITY_WORDS[Reason(reason)]} ({reason})"


@register.filter
def within(sentence: str) -> str:
    """A sentence as a part of another one."""
    return f"{sentence[:1].lower()}{sentence[1:].rstrip('.')}"


@register.filter
def key(text: str) -> SafeString:
    """An operation key: marked like all text of agents, and free to break after its separators."""
    return format_html_join(mark_safe("<wbr>"), "{}", ((marked(part),) for part in _parts(text)))


def _parts(text: str) -> list[str]:
    return [part for part in text.replace(":", ":\0").replace("/", "/\0").split("\0") if part]
