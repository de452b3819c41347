"""Knowledge: documents uploaded in admin, cut, and found by runners in any script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client as Browser

from agents.host.actions import knowledge
from agents.host_protocol import parameters
from agents.host_protocol.errors import HostRefusal
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.messages import text_in
from agents.knowledge import writing
from agents.knowledge.chunks import LONGEST, chunks_of
from agents.knowledge.reading import Unreadable, text_of
from agents.models import KnowledgeBase
from tests.agents.knowledge.bases import GUIDE, host_of, stored
from tests.support.client import Client
from tests.support.host.stage import Stage, run

Make = Callable[..., Stage]


def found(host: HostApi, base: KnowledgeBase, question: str, **more: Any) -> list[str]:
    entries = run(host.knowledge.retrieve(base.pk.hex, question, **more))
    return [text_in(entry.content) for entry in entries]


def test_the_best_chunk_comes_first_in_any_script(make_stage: Make) -> None:
    base = stored(GUIDE)
    host = host_of(make_stage(), base)
    assert "press it up" in found(host, base, "How do I do the bench press?")[0]
    assert "下蹲" in found(host, base, "深蹲的时候膝盖怎么放？")[0]
    assert "muscles grow" in found(host, base, "why does the body rest")[0]
    assert found(host, base, "quantum chromodynamics") == []


def test_an_entry_says_where_it_is_from(make_stage: Make) -> None:
    base = stored(GUIDE)
    (first, *_) = run(
        host_of(make_stage(), base).knowledge.retrieve(base.pk.hex, "bench press", top_k=1)
    )
    assert (first.metadata["document_name"], first.metadata["chunk"]) == ("guide.md", 1)
    assert first.score == pytest.approx(1 - first.distance)
    filtered = run(
        host_of(make_stage(), base).knowledge.retrieve(
            base.pk.hex, "bench", filters={"document_name": "other.md"}
        )
    )
    assert filtered == ()


def test_one_base_does_not_show_anothers_chunks(make_stage: Make) -> None:
    mine, other = stored(GUIDE), stored("The treasure lies under the bench.")
    host = host_of(make_stage(), mine)
    assert not any("treasure" in text for text in found(host, mine, "treasure bench"))
    with pytest.raises(HostRefusal, match="is not authorized"):
        found(host, other, "treasure")


def test_a_base_that_staff_put_away_is_not_found(make_stage: Make) -> None:
    base = stored(GUIDE)
    host = host_of(make_stage(), base)
    KnowledgeBase.objects.filter(pk=base.pk).update(is_active=False)
    knowledge.bases_in_use.clear()
    with pytest.raises(HostRefusal) as caught:
        found(host, base, "bench")
    assert caught.value.code == "not_found"


@pytest.mark.parametrize("question", ["", " ", "x" * 4_001, "nul \x00"])
def test_a_question_that_is_none_is_refused(make_stage: Make, question: str) -> None:
    base = stored(GUIDE)
    session = host_of(make_stage(), base).calls
    with pytest.raises(HostRefusal) as caught:
        run(
            session.call(
                "retrieve_knowledge_base", parameters.Retrieve(kb_id=base.pk.hex, query_text=question)
            )
        )
    assert caught.value.code == "invalid_argument"


def test_questions_cannot_break_the_query(make_stage: Make) -> None:
    base = stored(GUIDE)
    host = host_of(make_stage(), base)
    for question in ("bench' | 'x", "!!! & | ( )", "\\' OR 1=1 --", ":* <-> bench"):
        found(host, base, question)


def test_chunks_keep_all_of_the_text_and_fit() -> None:
    text = "\n\n".join(f"Paragraph {place}. " + "word " * (place * 7) for place in range(60))
    cut = chunks_of(f"# Title\n{text}\n\n{'长' * 3_000}。")
    assert max(len(one.text) for one in cut) <= LONGEST
    assert {one.heading for one in cut} == {"Title"}
    joined = " ".join(one.text for one in cut)
    assert all(f"Paragraph {place}." in joined for place in range(60))
    assert joined.count("长") == 3_000


def test_uploads_become_text_or_say_why_not() -> None:
    page = b"<h1>Hi</h1><p>One &amp; two</p><script>alert(1)</script><style>p{}</style>"
    text, mime = text_of("a.html", page)
    assert (text.split(), mime) == (["#", "Hi", "One", "&", "two"], "text/html")
    assert text_of("a.txt", "\ufefftext".encode("utf-16"))[0].strip("\ufeff") == "text"
    for name, content in (
        ("a.exe", b"MZ"),
        ("a.txt", b"\xff\xfa\x00"),
        ("a.md", b"  "),
        ("a.txt", bytes(5 * 1024 * 1024 + 1)),
    ):
        with pytest.raises(Unreadable):
            text_of(name, content)


@pytest.fixture
def browser(make_client: Callable[..., Client]) -> Browser:
    made = Browser()
    made.force_login(make_client(is_staff=True, is_superuser=True).user)
    return made


def test_staff_upload_a_document_in_admin(browser: Browser) -> None:
    base = KnowledgeBase.objects.create(name=uuid4().hex)
    upload = SimpleUploadedFile("guide.md", GUIDE.encode(), "text/markdown")
    path = "/admin/agents/knowledgedocument/add/"
    answer = browser.post(path, {"base": base.pk, "name": "", "text": "", "upload": upload}, follow=True)
    assert "3 chunks" in answer.content.decode()
    document = base.documents.get()
    assert (document.name, document.mime_type, document.chunk_count) == ("guide.md", "text/markdown", 3)
    bad = SimpleUploadedFile("guide.exe", b"MZ")
    refused = browser.post(path, {"base": base.pk, "name": "x", "text": "", "upload": bad})
    assert "Upload a file that ends in one of" in refused.content.decode()
    for page in ("knowledgebase", "knowledgedocument"):
        assert browser.get(f"/admin/agents/{page}/").status_code == 200
    assert browser.get(f"/admin/agents/knowledgedocument/{document.pk}/change/").status_code == 200


def test_embeddings_find_by_meaning_where_pgvector_is(
    make_stage: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agents.knowledge import embeddings

    if not writing.enable_pgvector():
        pytest.skip("this PostgreSQL has no pgvector")

    async def vectors(model: str, texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] if "sleep" in text.lower() or "nap" in text else [0.0, 1.0] for text in texts]

    monkeypatch.setattr(embeddings, "compute_vectors", vectors)
    embeddings.has_pgvector.clear()
    base = stored(GUIDE, embedding_model="global:any")
    host = host_of(make_stage(), base)
    assert "Sleep eight hours" in found(host, base, "a nap")[0]


def test_the_ids_of_bases_are_opaque(make_stage: Make) -> None:
    base = stored(GUIDE)
    session = host_of(make_stage(), base).calls
    granted = session.scene.resources.knowledge_bases[0]  # type: ignore[attr-defined]
    assert UUID(granted.kb_id) == base.pk
