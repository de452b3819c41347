from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    name = "config.auth"
    label = "accounts"
    verbose_name = "Accounts"

    def ready(self) -> None:
        from django.contrib.auth.models import Group

        from config.audit.watched_models import watch
        from config.auth.models import ApiToken, User
        from config.auth.roles import sync_roles_of
        from config.auth.sign_ins import watch_sign_ins

        post_migrate.connect(sync_roles_of, dispatch_uid="roles")
        watch(
            User,
            ignored=("last_login", "date_joined", "namespace", "named_by_id"),
            personal=("username", "first_name", "last_name", "email", "issuer", "subject"),
            name=lambda user: user.get_username() if user.is_staff else str(user.pk),
        )
        watch_sign_ins()
        watch(Group)
        watch(ApiToken, ignored=("last_used_at",))
