"""Dittybag: prompts, resources and tasks that people and their agents share."""

__version__ = "0.2.0"
