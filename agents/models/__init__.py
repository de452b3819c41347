"""The tables of agents."""

from agents.models.bindings import HostCall as HostCall
from agents.models.bindings import RunnerBinding as RunnerBinding
from agents.models.exercises import Category as Category
from agents.models.exercises import Difficulty as Difficulty
from agents.models.exercises import Equipment as Equipment
from agents.models.exercises import Exercise as Exercise
from agents.models.exercises import LibraryVersion as LibraryVersion
from agents.models.exercises import MuscleGroup as MuscleGroup
from agents.models.exercises import Source as Source
from agents.models.exercises import official_id as official_id
from agents.models.host import HostArtifact as HostArtifact
from agents.models.host import HostBlob as HostBlob
from agents.models.host import HostState as HostState
from agents.models.knowledge import KnowledgeBase as KnowledgeBase
from agents.models.knowledge import KnowledgeChunk as KnowledgeChunk
from agents.models.knowledge import KnowledgeDocument as KnowledgeDocument
from agents.models.mcp import McpServer as McpServer
from agents.models.plugins import PluginRuntime as PluginRuntime
from agents.models.tool_policies import ToolPolicy as ToolPolicy
