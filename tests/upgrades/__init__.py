"""Data and configurations of every release, which this version must open, update and remove."""
