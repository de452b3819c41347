"""Knowledge bases with a document, and a session that may ask them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from agents.host.actions import knowledge
from agents.host.grants import Base, Binding
from agents.host_protocol.host_api import HostApi
from agents.knowledge import writing
from agents.models import KnowledgeBase, KnowledgeDocument
from tests.support.host.stage import Stage

GUIDE = """# Bench press

Lie on the bench. Lower the bar to the chest, then press it up.

# 深蹲

双脚与肩同宽，慢慢下蹲，膝盖不要超过脚尖。

# Rest

Sleep eight hours. The muscles grow while you rest.
"""


def stored(text: str, **fields: Any) -> KnowledgeBase:
    base = KnowledgeBase.objects.create(name=uuid4().hex, **fields)
    document = KnowledgeDocument.objects.create(base=base, name="guide.md", text=text)
    writing.store_chunks(document)
    knowledge.bases_in_use.clear()
    return base


def host_of(stage: Stage, *bases: KnowledgeBase) -> HostApi:
    granted = tuple(Base(base.pk, base.name, base.embedding_model) for base in bases)
    names = tuple(base.name for base in bases)
    return HostApi(stage.session(bases=granted, binding=Binding(id=1, knowledge_bases=names)))
