from django.apps import AppConfig


class CoordinationConfig(AppConfig):
    name = "config.coordination"
    label = "coordination"
