"""The tables of conversations.

Runs and events are written by SQL in `conversations.log` and `conversations.runs`; the models define
the tables, their constraints and the reads of admin and history. Nobody saves runs or events by them.
"""

from conversations.models.attachments import Attachment as Attachment
from conversations.models.event_batches import EventBatch as EventBatch
from conversations.models.feedback import Feedback as Feedback
from conversations.models.interrupts import Interrupt as Interrupt
from conversations.models.interrupts import InterruptStatus as InterruptStatus
from conversations.models.messages import SEARCHED as SEARCHED
from conversations.models.messages import Message as Message
from conversations.models.messages import Role as Role
from conversations.models.runs import ENDED as ENDED
from conversations.models.runs import LIVE as LIVE
from conversations.models.runs import Run as Run
from conversations.models.runs import RunStatus as RunStatus
from conversations.models.spending import Spend as Spend
from conversations.models.threads import Thread as Thread
from conversations.models.threads import ThreadCopy as ThreadCopy
