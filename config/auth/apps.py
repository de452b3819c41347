from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "config.auth"
    label = "accounts"
    verbose_name = "Accounts"
