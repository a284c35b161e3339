"""The demo's work is believable, fits the demo's policies, and never uses a key twice."""

import json

import pytest

from dashboard.management.demo.cast import TENANTS, DemoTenant, provider_config
from dashboard.management.demo.jobs import RESOURCES, Boundary, Job
from dashboard.management.demo.stories import (
    CYCLE,
    FERNHILL,
    OPENING,
    bank_transfer,
    refund,
    with_changed_amount,
)
from ledger.reconciliation import check_configuration
from ledger.rules.canonical import read_json
from ledger.rules.policy import Policy, parse_policy, summary_sentence

POLICIES = {tenant.slug: parse_policy(read_json(tenant.policy.read_bytes())) for tenant in TENANTS}
ACTS = [*OPENING, *CYCLE]
JOBS = [act.job("K7", number) for number, act in enumerate(ACTS, start=1)]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_every_job_has_a_rule_and_a_whole_sentence(job: Job) -> None:
    policy: Policy = POLICIES[job.tenant]
    rule = policy.rule_for(job.tool)
    assert rule is not None
    sentence = summary_sentence(rule, job.args)
    assert sentence
    assert "[" not in sentence


def test_no_key_comes_twice_and_every_number_tells_the_same_story_again() -> None:
    assert len({(job.tenant, job.key) for job in JOBS}) == len(JOBS)
    assert [act.job("K7", number) for number, act in enumerate(ACTS, start=1)] == JOBS
    assert OPENING[0].job("K7", 1).key != OPENING[0].job("L2", 1).key


def test_the_opening_dies_at_every_boundary_and_leaves_work_that_stays_unknown() -> None:
    assert {act.stop_at for act in OPENING} == {None, *Boundary}
    assert any(act.story is bank_transfer and act.changed_afterwards for act in OPENING)


def test_changed_arguments_differ_in_the_amount_alone() -> None:
    job = refund(FERNHILL, "K7", 3)
    changed = with_changed_amount(job)
    assert (changed.key, changed.tool) == (job.key, job.tool)
    assert {name for name in job.args if job.args[name] != changed.args[name]} == {"amount"}


@pytest.mark.parametrize("tenant", TENANTS, ids=lambda tenant: tenant.slug)
def test_every_provider_a_rule_names_is_configured_and_compares_what_is_sent(tenant: DemoTenant) -> None:
    rules = POLICIES[tenant.slug].tools
    named = {rule.provider: RESOURCES[tool] for tool, rule in rules.items() if rule.provider}
    assert named == {name: resource for name, (resource, _) in tenant.providers.items()}
    for resource, compared in tenant.providers.values():
        check_configuration("http", provider_config("http://127.0.0.1:1", resource, compared))
        sent = next(job.args for job in JOBS if job.tenant == tenant.slug and job.resource == resource)
        assert set(compared) == set(sent)


def test_a_job_survives_its_way_over_the_pipe() -> None:
    for job in JOBS:
        assert Job.from_json(json.loads(json.dumps(job.as_json()))) == job
