"""Addresses of the pages."""

from django.urls import path, register_converter

from dashboard.converters import DecisionConverter
from dashboard.views import (
    dead_letters,
    decide,
    deliveries,
    destinations,
    item,
    many,
    numbers,
    operation,
    ownership,
    parked,
    problems,
    queue,
    session,
    system,
    teams,
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
    path("review/many/<slug:kind>/", many.many, name="many"),
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
    path("operations/<str:operation_id>/", operation.operation, name="operation"),
    path("ownership/", ownership.rules, name="ownership"),
    path("ownership/<slug:slug>/edit/", ownership.edit_rules, name="edit_rules"),
    path("ownership/<slug:slug>/apply/", ownership.apply_rules, name="apply_rules"),
    path("teams/", teams.team_list, name="teams"),
    path("teams/add/", teams.add_team, name="add_team"),
    path("teams/<int:team_id>/", teams.team, name="team"),
    path("teams/<int:team_id>/<slug:kind>/", teams.press_team, name="press_team"),
    path("numbers/", numbers.numbers, name="numbers"),
]
