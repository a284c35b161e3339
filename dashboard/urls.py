"""Addresses of the pages."""

from django.urls import path, register_converter

from dashboard.converters import DecisionConverter
from dashboard.views import decide, item, parked, problems, queue, session, system

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
]
