"""Policy documents: strictly read, the right rule found and hashed, the sentence only ever filled."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.pointers import glob_matches, pointer
from ledger.rules.policy import (
    Cost,
    Policy,
    PolicyInvalid,
    Rule,
    parse_policy,
    summary_sentence,
    target_of,
)
from ledger.rules.vocabulary import Effect

FULL: dict[str, Any] = {
    "effect": "payment",
    "idempotent": True,
    "key_ttl_s": 86_400,
    "provider": "psp",
    "confirm": "lookup",
    "executor": "ledger",
    "review": "always",
    "approvals": 3,
    "approval_ttl_s": 600,
    "dispatch_timeout_s": 0.05,
    "settle_s": 1.5,
    "max_checks": 7,
    "max_attempts": 2,
    "start_within_s": 3_600,
    "review_sla_s": 60,
    "cost": {"amount": "/amount", "unit": "/currency"},
    "target": "/customer/id",
    "mask": ["/card", "/customer/name"],
    "summary": "Refund {amount} {currency} to {customer.name}",
}


def one(rule: dict[str, Any]) -> Rule:
    """The rule of a document that has only this one."""
    found = parse_policy({"tools": {"t": rule}}).rule_for("t")
    assert found is not None
    return found


def test_every_field_of_the_table_is_read() -> None:
    rule = one(FULL)
    assert rule == Rule(
        effect=Effect.PAYMENT,
        idempotent=True,
        key_ttl_s=86_400.0,
        provider="psp",
        confirm="lookup",
        executor="ledger",
        review="always",
        approvals=3,
        approval_ttl_s=600.0,
        dispatch_timeout_s=0.05,
        settle_s=1.5,
        max_checks=7,
        max_attempts=2,
        start_within_s=3_600.0,
        review_sla_s=60.0,
        cost=Cost("/amount", "/currency"),
        target="/customer/id",
        mask=("/card", "/customer/name"),
        summary="Refund {amount} {currency} to {customer.name}",
    )
    assert {field.name for field in fields(Rule)} == set(FULL)


@pytest.mark.parametrize(
    ("effect", "people", "life_s"),
    [
        ("read", 1, 14_400),
        ("message", 1, 14_400),
        ("write", 1, 14_400),
        ("payment", 2, 1_800),
        ("deletion", 2, 1_800),
        ("deployment", 2, 1_800),
    ],
)
def test_defaults_of_the_table(effect: str, people: int, life_s: float) -> None:
    rule = one({"effect": effect})
    assert (rule.needed_approvals, rule.vote_life_s) == (people, life_s)
    assert (rule.idempotent, rule.key_ttl_s, rule.provider, rule.has_lookup) == (False, 0, None, False)
    assert (rule.confirm, rule.executor, rule.review) == ("receipt", "agent", "on_unknown")
    assert (rule.dispatch_timeout_s, rule.settle_s, rule.max_checks, rule.max_attempts) == (60, 30, 20, 5)
    assert (rule.start_within_s, rule.review_sla_s) == (7 * 86_400, 14_400)
    assert (rule.cost, rule.target, rule.mask, rule.summary) == (None, None, (), None)


def test_a_vote_lives_half_an_hour_wherever_two_people_are_needed() -> None:
    assert one({"effect": "write", "approvals": 2}).vote_life_s == 1_800
    assert one({"effect": "payment", "approvals": 1}).vote_life_s == 14_400


REFUSED: list[tuple[object, str, str]] = [
    ([], "", "object"),
    ({"tool": {}}, "/tool", "not known"),
    ({"tools": []}, "/tools", "object"),
    ({"default": "allow"}, "/default", "refuse"),
    ({"default": {"effect": "odd"}}, "/default/effect", "one of read"),
    ({"tools": {"": {"effect": "read"}}}, "/tools", "printable"),
    ({"tools": {"a b": {"effect": "read"}}}, "/tools", "printable"),
    ({"tools": {"x" * 256: {"effect": "read"}}}, "/tools", "printable"),
    ({"tools": {"a/b": {}}}, "/tools/a~1b/effect", "required"),
    ({"tools": {"t": None}}, "/tools/t", "object"),
]

FIELD_REFUSED: list[tuple[str, object, str]] = [
    ("effect", "Payment", "one of read"),
    ("effect", ["read"], "one of read"),
    ("colour", "red", "not known"),
    ("idempotent", 1, "true or false"),
    ("idempotent", "true", "true or false"),
    ("key_ttl_s", 60, "idempotent"),
    ("key_ttl_s", -1, "seconds"),
    ("provider", "", "name"),
    ("provider", {"name": "x"}, "name"),
    ("confirm", "webhook", "one of receipt"),
    ("executor", "worker", "one of agent"),
    ("executor", "ledger", "provider"),
    ("review", "never", "one of on_unknown"),
    ("approvals", 0, "whole number"),
    ("approvals", 1.5, "whole number"),
    ("approvals", True, "number"),
    ("approvals", "2", "number"),
    ("approval_ttl_s", 0, "seconds"),
    ("dispatch_timeout_s", 0.049, "seconds"),
    ("settle_s", None, "number"),
    ("settle_s", float("nan"), "finite"),
    ("settle_s", float("inf"), "finite"),
    ("settle_s", 10**400, "seconds"),
    ("max_checks", 0, "whole number"),
    ("max_attempts", 10**400, "whole number"),
    ("start_within_s", 1e12, "seconds"),
    ("cost", "amount", 'starts with "/"'),
    ("cost", 5, "pointer"),
    ("cost", {"unit": "/u"}, "required"),
    ("cost", {"amount": "/a", "per": "/b"}, "not known"),
    ("target", "", 'starts with "/"'),
    ("target", "/a~2b", 'starts with "/"'),
    ("mask", "/a", "list"),
    ("mask", ["a"], 'starts with "/"'),
    ("summary", "", "sentence"),
    ("summary", "Pay {", "single {"),
    ("summary", "Pay }", "single }"),
    ("summary", "Pay {}", "placeholder"),
    ("summary", "Pay {amount:>9}", "placeholder"),
    ("summary", "Pay {amount!r}", "placeholder"),
    ("summary", "Pay {amount[0]}", "placeholder"),
    ("summary", "Pay {a..b}", "placeholder"),
]


@pytest.mark.parametrize(("document", "path", "said"), REFUSED)
def test_a_document_that_is_not_understood_is_refused(document: object, path: str, said: str) -> None:
    with pytest.raises(PolicyInvalid) as refused:
        parse_policy(document)
    assert refused.value.path == path
    assert said in refused.value.problem


@pytest.mark.parametrize(("name", "value", "said"), FIELD_REFUSED)
def test_a_field_that_is_not_understood_is_refused(name: str, value: object, said: str) -> None:
    with pytest.raises(PolicyInvalid) as refused:
        one({"effect": "write", name: value})
    assert refused.value.path.startswith(f"/tools/t/{name}")
    assert said in refused.value.problem


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*FULL, "odd"]), json_values, max_size=4))
def test_no_rule_gives_anything_but_a_policy_or_a_refusal(rule: dict[str, Any]) -> None:
    try:
        assert isinstance(parse_policy({"tools": {"t": {"effect": "write", **rule}}}), Policy)
    except PolicyInvalid as refusal:
        path = refusal.path
    else:
        return
    assert path.startswith("/tools/t")


def test_exact_name_then_longest_glob_then_default() -> None:
    policy = parse_policy(
        {
            "default": {"effect": "write", "max_checks": 1},
            "tools": {
                "mail.*": {"effect": "message", "max_checks": 2},
                "mail.send*": {"effect": "message", "max_checks": 3},
                "mail.send.now": {"effect": "message", "max_checks": 4},
                "*": {"effect": "read", "max_checks": 5},
            },
        }
    )
    found = {tool: policy.rule_for(tool) for tool in ("mail.send.now", "mail.send", "mail.list", "pay")}
    assert {tool: rule and rule.max_checks for tool, rule in found.items()} == {
        "mail.send.now": 4,
        "mail.send": 3,
        "mail.list": 2,
        "pay": 5,
    }


def test_what_is_not_named_is_refused() -> None:
    assert parse_policy({}).rule_for("t") is None
    assert parse_policy({"default": "refuse", "tools": {"a.*": {"effect": "read"}}}).rule_for("b") is None
    assert parse_policy({"default": {"effect": "read"}}).rule_for("t") == Rule(Effect.READ)


def test_the_order_of_a_stored_document_decides_nothing() -> None:
    rules = {"a*": {"effect": "read"}, "?*": {"effect": "write"}, "*b": {"effect": "message"}}
    turned = dict(reversed(rules.items()))
    assert parse_policy({"tools": rules}).rule_for("ab") == parse_policy({"tools": turned}).rule_for("ab")


globs = st.text(st.sampled_from("ab*?.[\\"), max_size=8)


@given(globs, st.text(st.sampled_from("ab.[\\\n"), max_size=10))
def test_a_glob_means_what_its_regular_expression_means(glob: str, text: str) -> None:
    model = "".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in glob)
    assert glob_matches(glob, text) == bool(re.fullmatch(model, text, re.DOTALL))


def test_a_glob_of_many_stars_ends() -> None:
    assert not glob_matches("*a" * 120 + "b", "a" * 255)


def test_pointers_follow_rfc_6901() -> None:
    document = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, "n": {"x": None}}
    found = [
        "/foo",
        "/foo/0",
        "/",
        "/a~1b",
        "/m~0n",
        "/foo/01",
        "/foo/2",
        "/foo/-",
        "/foo/x",
        "/n/x",
        "/no/x",
        "/foo/0/0",
    ]
    assert [pointer(document, path) for path in found] == [
        ["bar", "baz"], "bar", 0, 1, 8, None, None, None, None, None, None, None,
    ]  # fmt: skip
    assert pointer(document, "") is document
    assert pointer(None, "/a") is None


def test_the_target_is_what_the_arguments_say() -> None:
    rule = Rule(Effect.PAYMENT, target="/account")
    assert target_of(Rule(Effect.PAYMENT), {"account": "a"}) is None
    assert target_of(rule, {"account": "acc-1"}) == "acc-1"
    assert target_of(rule, {"account": 42}) == "42"
    assert target_of(rule, {"account": 42.0}) == "42"
    missing: list[dict[str, Any] | None] = [
        {},
        {"account": None},
        {"account": True},
        {"account": ["a"]},
        None,
    ]
    for absent in missing:
        assert target_of(rule, absent) == ""


HASHED = {
    "effect": Effect.DELETION,
    "idempotent": False,
    "key_ttl_s": 1.0,
    "provider": "other",
    "confirm": "receipt",
    "executor": "agent",
    "review": "on_unknown",
    "approvals": 1,
    "approval_ttl_s": 601.0,
    "cost": None,
    "target": "/other",
}
NOT_HASHED = {
    "dispatch_timeout_s": 1.0,
    "settle_s": 2.0,
    "max_checks": 1,
    "max_attempts": 1,
    "start_within_s": 1.0,
    "review_sla_s": 1.0,
    "mask": (),
    "summary": "Other",
}


def test_the_rule_hash_covers_exactly_what_touches_authority_and_safety() -> None:
    rule = one(FULL)
    assert {*HASHED, *NOT_HASHED} == set(FULL)
    hashes = {replace(rule, **{name: value}).rule_hash for name, value in HASHED.items()}  # type: ignore[arg-type]
    assert len(hashes | {rule.rule_hash}) == len(HASHED) + 1
    for name, value in NOT_HASHED.items():
        assert replace(rule, **{name: value}).rule_hash == rule.rule_hash  # type: ignore[arg-type]


def test_spelling_out_a_default_changes_no_hash() -> None:
    short = one({"effect": "payment"})
    spelt = one(
        {"effect": "payment", "approvals": 2, "approval_ttl_s": 1_800, "idempotent": False, "key_ttl_s": 0}
    )
    assert short.rule_hash == spelt.rule_hash


def test_rule_hashes_stay_what_they_were() -> None:
    assert one(FULL).rule_hash == "v1:sha256:021ed07080825afe7f1c96dd0f9cd897a467be3c7978e12ab6f973f19bc44639"
    assert (
        one({"effect": "read"}).rule_hash
        == "v1:sha256:9f73bef087bc4615ae8f500f2feb52709a073ba579199a15962bdf0b050f8fea"
    )


def sentence(template: str, args: dict[str, Any] | None, **more: Any) -> str:
    return summary_sentence(one({"effect": "write", "summary": template, **more}), args)


def test_the_sentence_is_filled_from_the_arguments() -> None:
    args = {"amount": 12.5, "n": {"name": "Ada", "list": ["x"]}, "ok": True, "a.b": 1, "many": [1, 2]}
    assert sentence("Refund {amount} to {n.name}", args) == "Refund 12.5 to Ada"
    assert sentence("{ok} {n.list.0} {/a.b} {{{amount}}}", args) == "true x 1 {12.5}"
    assert sentence("Send {many}", args) == "Send [many: 2 entries]"
    assert sentence("Plain", args) == "Plain"
    assert summary_sentence(Rule(Effect.READ), args) == ""


def test_what_is_missing_shows() -> None:
    assert (
        sentence("Pay {amount} to {n.name}", {"n": "Ada", "amount": None}) == "Pay [no amount] to [no n.name]"
    )
    assert sentence("Pay {amount}", None) == "Pay [no amount]"


def test_text_from_arguments_is_never_a_template() -> None:
    assert sentence("{a}{b}", {"a": "{b}", "b": "{a.__class__}"}) == "{b}{a.__class__}"
    assert sentence("{a.__class__} {a.real}", {"a": 1}) == "[no a.__class__] [no a.real]"


def test_masked_values_are_masked_in_the_sentence_too() -> None:
    rule = one({"effect": "write", "summary": "{card.number} {card2} {name}", "mask": ["/card"]})
    args = {"card": {"number": "4242"}, "card2": "no", "name": "Ada"}
    assert summary_sentence(rule, args) == "[card.number masked] no Ada"
    assert summary_sentence(rule, args, revealed=True) == "4242 no Ada"


def test_a_long_value_is_cut_and_says_so() -> None:
    filled = sentence("{a}" * 300, {"a": "x" * 100_000})
    assert "… [100000 characters]" in filled
    assert len(filled) < 80_000


@given(st.text(max_size=30), st.dictionaries(st.text(max_size=3), json_values, max_size=3))
def test_no_template_that_is_accepted_fails_to_fill(template: str, args: dict[str, Any]) -> None:
    try:
        rule = one({"effect": "write", "summary": template})
    except PolicyInvalid:
        return
    assert isinstance(summary_sentence(rule, args), str)
