"""What admin shows of agents: runs and the exercise library."""

from agents import exercise_admin as exercise_admin
from agents import run_admin as run_admin
