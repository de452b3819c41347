"""The tables of prompts, models and settings.

A prompt version never changes: a save creates a new one. A key is encrypted before it is stored.
"""

from prompts.models.allowances import Budget as Budget
from prompts.models.allowances import Entitlement as Entitlement
from prompts.models.allowances import Quota as Quota
from prompts.models.allowances import QuotaUse as QuotaUse
from prompts.models.allowances import Tier as Tier
from prompts.models.app_settings import AppSetting as AppSetting
from prompts.models.endpoints import OWN_PRICE as OWN_PRICE
from prompts.models.endpoints import Endpoint as Endpoint
from prompts.models.endpoints import ModelCandidate as ModelCandidate
from prompts.models.endpoints import ModelMapping as ModelMapping
from prompts.models.endpoints import ProviderDialect as ProviderDialect
from prompts.models.endpoints import ReasoningEffort as ReasoningEffort
from prompts.models.endpoints import Secret as Secret
from prompts.models.prompts import Prompt as Prompt
from prompts.models.prompts import PromptKind as PromptKind
from prompts.models.prompts import PromptLabel as PromptLabel
from prompts.models.prompts import PromptVersion as PromptVersion
