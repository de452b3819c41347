"""The Celery application; where there is a broker it delivers wake-ups and schedules upkeep.

A message contains a run id and may be lost, duplicated or late without harm, because the run's row
decides which worker executes it (DESIGN §2). Hence early acknowledgement, no results and no retries.
"""

from __future__ import annotations

import os
import sys

from celery import Celery, signals
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("parley")
app.conf.update(
    task_ignore_result=True,
    task_acks_late=False,
    task_default_queue="parley",
    worker_prefetch_multiplier=64,
    worker_hijack_root_logger=False,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
    broker_connection_timeout=2,
    broker_transport_options={"socket_connect_timeout": 2},
    event_queue_expires=60,
    task_publish_retry=False,
    beat_schedule={
        "upkeep": {"task": "agents.upkeep", "schedule": 60.0, "options": {"expires": 50}},
    },
)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["agents.worker"])


@signals.celeryd_init.connect(weak=False)
@signals.beat_init.connect(weak=False)
def _require_broker(**_: object) -> None:
    """End a bare `celery worker` or `celery beat` that nothing would ever reach."""
    if not settings.CELERY_BROKER_URL:
        sys.exit("Celery needs a broker: set REDIS_URL or CELERY_BROKER_URL. `worker` needs none.")
