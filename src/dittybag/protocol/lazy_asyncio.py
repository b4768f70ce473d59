"""asyncio without what a stdio server never uses.

Importing asyncio loads OpenSSL, which takes a tenth of a server's start-up time and a fifth of its memory. It
also loads modules for messages about errors, with a tokenizer and a parser of Python, and for processes,
which take another tenth. They are loaded on first use instead. This has no effect if asyncio is already
imported.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from dittybag.protocol.lazy_modules import placeholders

_RARELY_USED = ("_colorize", "linecache", "textwrap", "tokenize")
_TLS = () if "ssl" in sys.modules else ("ssl", "asyncio.sslproto")
#: asyncio has constants of the same names.
_SUBPROCESS = {"PIPE": -1, "STDOUT": -2, "DEVNULL": -3}


def _refuse_signature(*_: object, **__: object) -> NoReturn:
    raise ValueError("a signature is not needed")


#: In Python 3.14, asyncio makes two data classes. `dataclass` puts the signature into the docstring, if there
#: is one, and unwraps methods that are wrapped, of which there are none.
_INSPECT = {"signature": _refuse_signature, "unwrap": lambda function: function}

if "asyncio" in sys.modules:
    import asyncio
else:
    with placeholders(*_TLS, *_RARELY_USED, subprocess=_SUBPROCESS, inspect=_INSPECT):
        import asyncio

__all__ = ["asyncio"]
