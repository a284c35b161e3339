"""What a report of non-delivery (RFC 3464) says about a mail: to whom it could not be delivered, for good."""

from __future__ import annotations

from email.message import EmailMessage, Message
from email.utils import unquote

from ledger.providers.mail_message import header


def refused_recipients(report: EmailMessage, message_id: str) -> frozenset[str]:
    """The recipients a report names as failed, lower-cased; empty where it reports nothing final about this
    mail. A delay is not final."""
    if report.get_content_type() != "multipart/report" or not _is_about(report, message_id):
        return frozenset()
    statuses = [part for part in report.walk() if part.get_content_type() == "message/delivery-status"]
    blocks = [block for status in statuses for block in _blocks(status)]
    return frozenset(
        _address(str(block.get("Final-Recipient", "")))
        for block in blocks
        if str(block.get("Action", "")).strip().lower() == "failed" and block.get("Final-Recipient")
    )


def _blocks(status: Message) -> list[Message]:
    payload = status.get_payload()
    return [block for block in payload if isinstance(block, Message)] if isinstance(payload, list) else []


def _is_about(report: EmailMessage, message_id: str) -> bool:
    """Does it return the mail of this id, or at least its headers?"""
    for part in report.walk():
        kind = part.get_content_type()
        if kind == "message/rfc822":
            returned = part.get_payload()
            if isinstance(returned, list) and returned and _id_of(returned[0]) == message_id:
                return True
        if kind == "text/rfc822-headers" and _in_headers(part, message_id):
            return True
    return False


def _id_of(returned: object) -> str:
    return header(returned, "message-id") if isinstance(returned, EmailMessage) else ""


def _in_headers(part: Message, message_id: str) -> bool:
    payload = part.get_payload()
    lines = payload.replace("\r\n ", " ").splitlines() if isinstance(payload, str) else []
    named = [line.partition(":") for line in lines]
    return any(name.lower() == "message-id" and value.strip() == message_id for name, _, value in named)


def _address(final_recipient: str) -> str:
    """`rfc822; ada@example.org` as an address."""
    return unquote(final_recipient.partition(";")[2].strip()).strip("<>").lower()
