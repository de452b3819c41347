"""Find the chunks of a knowledge base that fit a question, by words and by meaning (vectors).

By words: every chunk with any word (or pair of characters) of the question is found; each word counts
by its rarity in the base, so that "the" has no weight. By meaning: the nearest vectors are found. A
chunk that both find comes first.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from agents.host_protocol.messages import ContentElement, RetrievalEntry
from agents.knowledge import embeddings
from config import sql
from conversations.threads.search_terms import make_terms, spaced

MOST: Final = 50
_MOST_PIECES: Final = 32
_POOL: Final = 50
_RANK: Final = 60  # the constant of reciprocal rank fusion
_PREFIXED: Final = 4  # words with at least so many letters also match their endings

_BY_WORDS: Final = """
WITH terms AS (
    SELECT piece::tsquery AS piece FROM unnest(%(pieces)s::text[]) AS p(piece)
), weight AS MATERIALIZED (
    SELECT piece, ln(1 + %(chunks)s::float8 / (1 + (
        SELECT count(*) FROM (SELECT FROM agents_knowledgechunk c
            WHERE c.keys @@ (%(base)s::tsquery && piece) LIMIT 10000) matches))) AS worth FROM terms
), scored AS MATERIALIZED (
    SELECT c.id, (SELECT sum(worth) FROM weight WHERE c.keys @@ weight.piece) AS worth
    FROM agents_knowledgechunk c WHERE c.keys @@ (%(base)s::tsquery && %(any)s::tsquery) LIMIT 10000
)
SELECT id, worth / nullif((SELECT sum(worth) FROM weight), 0) FROM scored
ORDER BY worth DESC, id LIMIT %(limit)s
"""
_COUNT: Final = "SELECT count(*) FROM agents_knowledgechunk WHERE base_id = %s"
_BY_MEANING: Final = """
SELECT id, embedding::vector <=> %(vector)s::float8[]::vector AS distance FROM agents_knowledgechunk
WHERE base_id = %(base_id)s AND array_length(embedding, 1) = %(size)s
ORDER BY distance, id LIMIT %(limit)s
"""
_CHUNKS: Final = """
SELECT c.id, c.heading, c.text, c.place, d.id, d.name, d.mime_type
FROM agents_knowledgechunk c JOIN agents_knowledgedocument d ON d.id = c.document_id
WHERE c.id = ANY(%s)
"""


async def retrieve(
    base_id: UUID, question: str, *, top_k: int, documents: frozenset[str], embedding_model: str
) -> list[RetrievalEntry]:
    """Return the best chunks, the best first; only of the named documents, if any are named."""
    by_words = await _score_by_words(base_id, question)
    by_meaning = await _score_by_meaning(base_id, question, embedding_model) if embedding_model else {}
    scores = _merge_scores(by_words, by_meaning)
    ranked = sorted(scores, key=lambda one: (-scores[one], one))
    found = {row[0]: row for row in await sql.every(_CHUNKS, (ranked,))}
    named = [
        found[one] for one in ranked if one in found and (not documents or found[one][5] in documents)
    ]
    return [_entry(row, scores[row[0]]) for row in named[:top_k]]


async def _score_by_words(base_id: UUID, question: str) -> dict[int, float]:
    """Return each chunk's share of the question's weight, 0 to 1."""
    pieces = make_terms(await spaced(question)).pieces[:_MOST_PIECES]
    if not pieces:
        return {}
    quoted = [f"'{one}':*" if len(one) >= _PREFIXED else f"'{one}'" for one in pieces]
    count = await sql.one(_COUNT, (base_id,))
    parameters: dict[str, Any] = {
        "pieces": quoted,
        "any": " | ".join(quoted),
        "base": f"'@{base_id}'",
        "chunks": count[0] if count else 0,
        "limit": _POOL,
    }
    return {chunk: float(score or 0) for chunk, score in await sql.every(_BY_WORDS, parameters)}


async def _score_by_meaning(base_id: UUID, question: str, model: str) -> dict[int, float]:
    """Return the distance of each chunk's vector, 0 to 2."""
    if not await embeddings.has_pgvector.get():
        return {}
    vectors = await embeddings.compute_vectors(model, [question])
    if not vectors:
        return {}
    parameters = {"base_id": base_id, "vector": vectors[0], "size": len(vectors[0]), "limit": _POOL}
    return {chunk: float(distance) for chunk, distance in await sql.every(_BY_MEANING, parameters)}


def _merge_scores(by_words: dict[int, float], by_meaning: dict[int, float]) -> dict[int, float]:
    """Return one score per chunk, 0 to 1: by words alone, or else by its places in both lists."""
    if not by_meaning:
        return by_words
    places: dict[int, float] = {}
    for ranked in (list(by_words), list(by_meaning)):
        for place, chunk in enumerate(ranked, 1):
            places[chunk] = places.get(chunk, 0.0) + (_RANK + 1) / (2 * (_RANK + place))
    return places


def _entry(row: Any, score: float) -> RetrievalEntry:
    chunk_id, heading, text, place, document_id, name, mime_type = row
    whole = f"{heading}\n\n{text}" if heading and heading != text else text
    return RetrievalEntry(
        id=str(chunk_id),
        content=[ContentElement(type="text", text=whole)],
        metadata={
            "document_id": document_id.hex,
            "document_name": name,
            "mime_type": mime_type,
            "chunk": place,
        },
        distance=round(1 - score, 6),
        score=round(score, 6),
    )
