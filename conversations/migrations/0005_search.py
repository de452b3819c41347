r"""Search: whose a message is, and an index of the words and character pairs in it.

Three functions, all IMMUTABLE, so that the index needs no trigger and no second copy of the text:

- `conversations_folded(text)`: the first 20,000 characters, compatibility forms and case folded.
- `conversations_spaced(text)`: the same as words with one space before and after each; runs of scripts
  that are written without spaces (Chinese, Japanese, Korean, Thai, …; emoji too) are words of their own.
- `conversations_tokens(owner, text)`: the keys of the index: each word, each pair of neighbouring
  characters of an unspaced run, the last character of such a run, and the owner, so that what others
  wrote costs a search nothing but a skip.

Case is folded by a collation that knows all letters where the server has one: the C locale of many
installations knows only ASCII. Waiting entries of the index are merged by `conversations.upkeep.rounds`;
the large pending list keeps that off the writers.
"""

from typing import Any, ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

_SEPARATORS = (
    r"\u0001-\u002f\u003a-\u0060\u007b-\u00bf\u00d7\u00f7\u2000-\u206f\u3000-\u3004\u3008-\u3020"
    r"\u3030\u303d\u30fb\ufe00-\ufe0f\uff00-\uff0f\ufff0-\uffff"
)
_UNSPACED = r"\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u2190-\u2bff\u2e80-\uffef\U00010000-\U0010ffff"
_FOLDED = (
    "lower(CASE WHEN octet_length(content) = length(content) THEN left(content, 20000) "
    "ELSE normalize(left(content, 20000), NFKC) END{collation})"
)
_SPLIT = (
    rf"regexp_replace(regexp_replace({_FOLDED}, '[{_SEPARATORS}]+', ' ', 'g'), "
    rf"'([{_UNSPACED}]+)', ' \1 ', 'g')"
)
_FUNCTIONS = f"""
CREATE FUNCTION conversations_folded(content text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT {_FOLDED} $$;

CREATE FUNCTION conversations_spaced(content text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 5000 AS $$
BEGIN
    RETURN ' ' || {_SPLIT} || ' ';
END $$;

CREATE FUNCTION conversations_tokens(owner_id uuid, content text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 20000 AS $$
DECLARE
    spaced text := {_SPLIT};
    chars text[] := string_to_array(regexp_replace(spaced, '[^{_UNSPACED}]+', ' ', 'g'), NULL);
BEGIN
    RETURN array_to_tsvector(ARRAY(
        SELECT '@' || owner_id
        UNION ALL
        SELECT left(word, 40) FROM unnest(string_to_array(
            regexp_replace(spaced, '[{_UNSPACED}]+', ' ', 'g'), ' ')) AS word WHERE word <> ''
        UNION ALL
        SELECT rtrim(one || coalesce(two, '')) FROM unnest(chars, chars[2:]) AS pair(one, two)
        WHERE one <> ' '
    ));
END $$;
"""
_DROP_FUNCTIONS = """
DROP FUNCTION conversations_tokens(uuid, text);
DROP FUNCTION conversations_spaced(text);
DROP FUNCTION conversations_folded(text);
"""
_COLLATION = """
SELECT quote_ident(collname) FROM pg_collation WHERE collnamespace = 'pg_catalog'::regnamespace
AND collname IN ('und-x-icu', 'pg_c_utf8', 'C.utf8', 'C.UTF-8', 'en_US.utf8')
AND collencoding IN (-1, pg_char_to_encoding('UTF8'))
ORDER BY array_position('{pg_c_utf8,und-x-icu,C.utf8,C.UTF-8}', collname::text) LIMIT 1
"""
_INDEX = """
CREATE INDEX CONCURRENTLY message_tokens ON conversations_message
USING gin (conversations_tokens(owner_id, content))
WITH (fastupdate = on, gin_pending_list_limit = 65536)
WHERE role IN ('user', 'assistant')
"""


def drop_functions(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute(_DROP_FUNCTIONS)


def make_functions(apps: Any, schema_editor: Any) -> None:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_COLLATION)
        row = cursor.fetchone()
        cursor.execute(_FUNCTIONS.replace("{collation}", f" COLLATE {row[0]}" if row else ""))


class Migration(migrations.Migration):
    atomic = False
    dependencies: ClassVar = [
        ("conversations", "0004_client_ids"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations: ClassVar = [
        migrations.AddField(
            "message",
            "owner",
            models.ForeignKey(
                null=True,
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="messages",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunSQL(
            "UPDATE conversations_message message SET owner_id = thread.owner_id "
            "FROM conversations_thread thread WHERE thread.id = message.thread_id",
            migrations.RunSQL.noop,
        ),
        migrations.AlterField(
            "message",
            "owner",
            models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="messages",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddIndex(
            "message",
            models.Index(
                condition=models.Q(("role__in", ("user", "assistant"))),
                fields=["owner", "created_at"],
                name="message_searched",
            ),
        ),
        migrations.RunPython(make_functions, drop_functions),
        migrations.RunSQL(_INDEX, "DROP INDEX message_tokens"),
    ]
