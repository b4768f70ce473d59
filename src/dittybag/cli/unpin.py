"""`dittybag unpin`, see `dittybag.cli.pin`."""

from dittybag.cli.pin import unpin_command as command

__all__ = ["command"]
