from django.apps import AppConfig


class ReviewConfig(AppConfig):
    name = "review"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from ledger.approvals import register_approvers  # noqa: PLC0415 - models are ready only now
        from ledger.owners import register_owners  # noqa: PLC0415
        from ledger.queries.invariants import register_checks  # noqa: PLC0415
        from review.owners import RuledOwners  # noqa: PLC0415
        from review.queries.invariants import page_counts_are_query_counts  # noqa: PLC0415
        from review.rights import ScopedApprovers  # noqa: PLC0415

        register_approvers(ScopedApprovers())
        register_owners(RuledOwners())
        register_checks(page_counts_are_query_counts)
