"""What a person sees of the work of their tenants, as plain values."""

from review.queries.item import item_page
from review.queries.page import ItemPage
from review.queries.queue import queue
from review.queries.tenants import tenants_of
from review.queries.values import TAB_LABELS, BadFilter, NotVisible, QueueFilters, QueuePage, QueueRow, Tab

__all__ = [
    "TAB_LABELS",
    "BadFilter",
    "ItemPage",
    "NotVisible",
    "QueueFilters",
    "QueuePage",
    "QueueRow",
    "Tab",
    "item_page",
    "queue",
    "tenants_of",
]
