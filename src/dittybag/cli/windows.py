"""What every command answers on Windows, where Dittybag does not run: how to install it under WSL."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_MESSAGE = """\
error: Dittybag does not run on Windows itself. It runs on Windows under WSL, the Windows Subsystem for Linux
hint: in PowerShell, run: wsl --install
hint: then open the Linux terminal, and install and run Dittybag there as on Linux
"""


def refuse(arguments: Sequence[str]) -> int:
    """Report that Windows is not supported, and return the exit status.

    `dittybag prime` is a hook of a client: it stays silent and succeeds, as whenever it cannot do its work.
    """
    if arguments and arguments[0] == "prime" and "--help" not in arguments:
        return 0
    sys.stderr.write(_MESSAGE)
    return 1
