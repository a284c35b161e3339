"""The words of pages for rights, roles and what is done to them."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.rules.vocabulary import AccessChangeKind
from review.roles import Role

ROLE_WORDS: Mapping[Role, str] = {
    Role.VIEWER: "Sees all work of the tenant.",
    Role.OPERATOR: "Claims, re-checks, confirms, rejects and relinks.",
    Role.APPROVER: "Approves new sends of every tool and effect, and does what an operator does.",
    Role.ADMIN: "Looks after ownership, policies, agents and keys, destinations and people. Decides no work.",
    Role.AUDITOR: "Reads everything, the record of access too, and changes nothing.",
}

RIGHT_LABELS: Mapping[str, str] = {
    "view_work": "See the work",
    "decide_work": "Decide work: claim, re-check, confirm, reject, relink",
    "approve_sends": "Approve new sends",
    "administer": "Administer: ownership, policies, agents and keys, destinations, people",
    "audit": "Audit: read everything, change nothing",
}

_K = AccessChangeKind

ACCESS_WORDS: Mapping[str, str] = {
    _K.ROLE_GIVEN: "Role given",
    _K.ROLE_TAKEN: "Role taken",
    _K.SCOPE_GIVEN: "May approve within a scope",
    _K.SCOPE_TAKEN: "Scope taken",
    _K.SWITCHED_OFF: "Switched off",
    _K.SWITCHED_ON: "Switched on",
    _K.AGENT_CREATED: "Agent created",
    _K.AGENT_GIVEN: "Agent given to another owner",
    _K.KEY_CREATED: "Key created",
    _K.KEY_ROTATED: "Key rotated",
    _K.KEY_REVOKED: "Key revoked",
    _K.POLICY_PUBLISHED: "Policy published",
    _K.ACCOUNT_MADE: "Account made, with a link to set its password",
    _K.LINK_MADE: "Link made to set a password",
    _K.PASSWORD_SET: "Password set",
    _K.AGENT_SWITCHED_OFF: "Agent switched off",
    _K.AGENT_SWITCHED_ON: "Agent switched on",
}
