"""Readers of import sources and writers of exports.

They convert between files and domain entities. `dittybag.services.exchange` decides what to import or export.
"""
