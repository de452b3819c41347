"""The event log's table, partitioned by run id (UUIDv7, so by time), and room for in-place updates.

`json` and not `jsonb`: it keeps the bytes as written and accepts every character that JSON does.
The default partition takes what no span covers, so that an append can never fail for want of one.
"""

from typing import ClassVar

from django.db import migrations

FORWARD = """
CREATE TABLE conversations_eventbatch (
    run_id uuid NOT NULL,
    first_seq integer NOT NULL CHECK (first_seq >= 1),
    last_seq integer NOT NULL,
    events json NOT NULL,
    PRIMARY KEY (run_id, first_seq),
    CHECK (last_seq >= first_seq)
) PARTITION BY RANGE (run_id);
CREATE TABLE conversations_eventbatch_default PARTITION OF conversations_eventbatch DEFAULT;
ALTER TABLE conversations_run SET (fillfactor = 70);
ALTER TABLE conversations_thread SET (fillfactor = 70);
"""

BACKWARD = """
DROP TABLE conversations_eventbatch;
ALTER TABLE conversations_run RESET (fillfactor);
ALTER TABLE conversations_thread RESET (fillfactor);
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conversations", "0001_initial")]
    operations: ClassVar = [migrations.RunSQL(FORWARD, BACKWARD)]
