"""Is the process up, and can it do its work?"""

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe


@require_safe
def healthz(_request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "up"})


@require_safe
def readyz(_request: HttpRequest) -> JsonResponse:
    """200 when the database answers and has every migration of this code, else 503."""
    try:
        missing = unapplied_migrations()
    except DatabaseError:
        return JsonResponse({"status": "unavailable", "detail": "The database does not answer."}, status=503)
    if missing:
        detail = f"{missing} migrations are not applied: run `python manage.py migrate`."
        return JsonResponse({"status": "unavailable", "detail": detail}, status=503)
    return JsonResponse({"status": "ready"})


def unapplied_migrations() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
