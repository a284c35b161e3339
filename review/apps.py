from django.apps import AppConfig


class ReviewConfig(AppConfig):
    name = "review"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from ledger.approvals import register_approvers  # noqa: PLC0415 - models are ready only now
        from review.rights import ScopedApprovers  # noqa: PLC0415

        register_approvers(ScopedApprovers())
