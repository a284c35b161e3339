"""Addresses of the pages."""

from django.urls import path, register_converter

from dashboard.converters import DecisionConverter
from dashboard.views import (
    access,
    agents,
    dead_letters,
    decide,
    deliveries,
    destinations,
    item,
    numbers,
    operation,
    parked,
    problems,
    queue,
    session,
    system,
)

register_converter(DecisionConverter, "decision")

urlpatterns = [
    path("", session.start, name="start"),
    path("sign-in/", session.sign_in, name="sign_in"),
    path("sign-out/", session.sign_out, name="sign_out"),
    path("help/", session.help_page, name="help"),
    path("system/", system.system, name="system"),
    path("problems/", problems.problems, name="problems"),
    path("problems/<slug:slug>", problems.problem, name="problem"),
    path("review/", queue.queue_page, name="queue"),
    path("review/strip/", queue.strip, name="queue_strip"),
    path("review/parked/", parked.parked_list, name="parked"),
    path("review/parked/<str:fact_id>/", parked.parked_fact, name="parked_fact"),
    path("review/parked/<str:fact_id>/note/", parked.note_parked, name="note_parked"),
    path("review/parked/<str:fact_id>/dismiss/", parked.dismiss_parked, name="dismiss_parked"),
    path("review/<str:item_id>/", item.item, name="item"),
    path("review/<str:item_id>/changed/", item.changed, name="item_changed"),
    path("review/<str:item_id>/arguments/", item.whole_arguments, name="item_arguments"),
    path("review/<str:item_id>/<decision:kind>/", decide.decide, name="decide"),
    path("deliveries/", deliveries.delivery_list, name="deliveries"),
    path("deliveries/<str:delivery_id>/", deliveries.delivery, name="delivery"),
    path("deliveries/<str:delivery_id>/<slug:kind>/", deliveries.press_delivery, name="press_delivery"),
    path("dead-letters/", dead_letters.dead_letters, name="dead_letters"),
    path("dead-letters/redeliver/", dead_letters.freeze, name="freeze"),
    path("redeliveries/<str:plan_id>/", dead_letters.plan, name="redelivery_plan"),
    path("redeliveries/<str:plan_id>/cancel/", dead_letters.cancel_plan, name="cancel_plan"),
    path("destinations/", destinations.destination_list, name="destinations"),
    path("destinations/add/", destinations.add_destination, name="add_destination"),
    path("destinations/<str:destination_id>/", destinations.destination, name="destination"),
    path(
        "destinations/<str:destination_id>/<slug:kind>/",
        destinations.press_destination,
        name="press_destination",
    ),
    path("access/", access.access_list, name="access"),
    path("access/me/", access.own, name="own_rights"),
    path("access/<slug:slug>/add/", access.add_person, name="add_person"),
    path("access/<slug:slug>/<int:person_id>/", access.person, name="person"),
    path("access/<slug:slug>/<int:person_id>/<slug:kind>/", access.press_person, name="press_person"),
    path("agents/", agents.agent_list, name="agents"),
    path("agents/<slug:slug>/add/", agents.add_agent, name="add_agent"),
    path("agents/<slug:slug>/<int:agent_id>/", agents.agent, name="agent"),
    path("agents/<slug:slug>/<int:agent_id>/<slug:kind>/", agents.press_agent, name="press_agent"),
    path(
        "agents/<slug:slug>/<int:agent_id>/keys/<slug:key_id>/<slug:kind>/",
        agents.press_key,
        name="press_key",
    ),
    path("operations/<str:operation_id>/", operation.operation, name="operation"),
    path("numbers/", numbers.numbers, name="numbers"),
]
