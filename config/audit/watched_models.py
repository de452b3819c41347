"""Models whose saves and deletions are recorded.

Changes by queryset.update() are not seen here: code that uses it on a watched model calls `record`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import ObjectDoesNotExist
from django.db import models
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_save

from config.audit.recording import current_actor, record

CHANGED: Final = "changed (not shown)"
_NEVER_SHOWN: Final = frozenset(("password", "digest", "sealed", "secret"))
_watched: dict[type[models.Model], _Watch] = {}


@dataclass(eq=False)
class _Watch:
    """The recorded fields of a model; `of` is the foreign key to the object that a row belongs to."""

    model: type[models.Model]
    ignored: Collection[str]
    personal: Collection[str]
    of: str
    name: Callable[[Any], str]
    by_people: bool

    def __post_init__(self) -> None:
        model = self.model
        self._fields = [
            field
            for field in model._meta.concrete_fields
            if not (field.primary_key and field.name == "id")
            and field.name not in self.ignored
            and not field.generated
            and not getattr(field, "auto_now", False)
            and not getattr(field, "auto_now_add", False)
        ]
        self._names = {field.attname for field in self._fields} | {field.name for field in self._fields}
        label = model._meta.label_lower
        pre_save.connect(self._before_save, sender=model, weak=False, dispatch_uid=f"audit:{label}")
        post_save.connect(self._after_save, sender=model, weak=False, dispatch_uid=f"audit:{label}")
        post_delete.connect(self._after_delete, sender=model, weak=False, dispatch_uid=f"audit:{label}")
        for many in model._meta.local_many_to_many:
            listener, through = partial(self._after_links, many.name), many.remote_field.through
            m2m_changed.connect(listener, sender=through, weak=False, dispatch_uid=f"audit:{label}")

    def _before_save(self, instance: Any, raw: bool, update_fields: Any, **_: Any) -> None:
        instance._audit_before = None
        if raw or instance._state.adding or not self._concerns(update_fields):
            return
        if self.by_people and current_actor() is None:
            return
        stored = type(instance)._base_manager.filter(pk=instance.pk)
        instance._audit_before = stored.values(*[field.attname for field in self._fields]).first()

    def _after_save(
        self, instance: Any, created: bool, raw: bool, update_fields: Any = None, **_: Any
    ) -> None:
        if raw or not self._concerns(update_fields):
            return
        before = getattr(instance, "_audit_before", None) or {}
        changed = [field for field in self._fields if created or self._differs(field, before, instance)]
        if not changed:
            return
        after = {field.name: self._redact(field, field.value_from_object(instance)) for field in changed}
        if created:
            after = {name: value for name, value in after.items() if value not in (None, "", [], {})}
            self._record("added", instance, {}, after)
        else:
            was = {field.name: self._redact(field, before.get(field.attname)) for field in changed}
            self._record("changed", instance, was, after)

    def _after_delete(self, instance: Any, **_: Any) -> None:
        facts = {
            field.name: self._redact(field, field.value_from_object(instance)) for field in self._fields
        }
        self._record("deleted", instance, facts, {})

    def _record(self, action: str, instance: Any, before: dict[str, Any], after: dict[str, Any]) -> None:
        if self.by_people and current_actor() is None:
            return
        thing, name = instance, self.name(instance)
        if self.of:
            try:
                thing = getattr(instance, self.of)
            except ObjectDoesNotExist:
                return  # it is deleted with its parent, which has an entry
            action, name = f"{action} {instance._meta.verbose_name}", f"{thing}: {name}"
        record(action, thing, before=before, after=after, name=name)

    def _after_links(
        self, field: str, *, instance: Any, action: str, reverse: bool, model: Any, pk_set: Any, **_: Any
    ) -> None:
        """Record the added and removed names of a many-to-many field."""
        if reverse or action not in ("post_add", "post_remove", "pre_clear"):
            return
        if action == "pre_clear":
            rows = getattr(instance, field).all()
        else:
            rows = model._base_manager.filter(pk__in=pk_set)
        names = [str(row) for row in rows[:100]]
        if not names:
            return
        added, linked = action == "post_add", {field: sorted(names)}
        record(
            f"{field} {'added' if added else 'removed'}",
            instance,
            before={} if added else linked,
            after=linked if added else {},
            name=self.name(instance),
        )

    def _concerns(self, update_fields: Any) -> bool:
        return update_fields is None or bool(self._names & set(update_fields))

    def _differs(self, field: Any, before: dict[str, Any], instance: Any) -> bool:
        return bool(before.get(field.attname) != field.to_python(field.value_from_object(instance)))

    def _redact(self, field: Any, value: Any) -> Any:
        """Return a value for the log, without keys, passwords and personal data."""
        if field.name in _NEVER_SHOWN or field.name in self.personal:
            return CHANGED if value else ""
        if value is None or not isinstance(field, models.ForeignKey):
            return value
        about = field.remote_field.model
        if about._meta.label == settings.AUTH_USER_MODEL:
            return str(value)
        named = about._base_manager.filter(**{field.target_field.name: value}).first()
        return f"{named} ({value})" if named is not None else str(value)


def watch(
    model: type[models.Model],
    *,
    ignored: Collection[str] = (),
    personal: Collection[str] = (),
    of: str = "",
    name: Callable[[Any], str] = str,
    by_people: bool = False,
) -> None:
    """Record every save and deletion of the model's rows.

    `ignored` fields are not recorded, and of `personal` ones only the fact of a change, because an
    account can be erased and the log cannot. With `by_people`, changes by Parley are not recorded.
    """
    if model not in _watched:
        _watched[model] = _Watch(model, ignored, personal, of, name, by_people)


def watch_pages(apps: Collection[str], *, but: Collection[str]) -> None:
    """Watch every other model of these apps that has a page in admin, including future ones."""
    for model in admin.site._registry:
        if model._meta.app_label in apps and model._meta.label_lower not in but:
            watch(model, by_people=True)
