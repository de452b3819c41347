"""The offline runner behind the model `demo`."""

from agents.runners.demo.runner import DemoRunner as DemoRunner
