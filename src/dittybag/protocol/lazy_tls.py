"""asyncio without what a stdio server never uses.

Importing asyncio loads OpenSSL, which takes a tenth of a server's start-up time and a fifth of its memory. It
also loads modules for messages about errors, with a tokenizer and a parser of Python, which take another
tenth. They are loaded on first use instead. This has no effect if asyncio is already imported.
"""

from __future__ import annotations

import sys

from dittybag.protocol.lazy_modules import placeholders

_RARELY_USED = ("inspect", "linecache", "textwrap")
_TLS = () if "ssl" in sys.modules else ("ssl", "asyncio.sslproto")

with placeholders(*(() if "asyncio" in sys.modules else (*_TLS, *_RARELY_USED))):
    import asyncio

__all__ = ["asyncio"]
