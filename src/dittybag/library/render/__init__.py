"""Rendering and parsing of foreign text, in processes that may die of it."""
