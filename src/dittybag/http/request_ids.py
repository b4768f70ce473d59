"""Middleware that gives every response, and its log records, a request id."""

from __future__ import annotations

import os
import re
from itertools import count
from typing import Final

from dittybag.http.http_request import REQUEST_ID, HttpRequest
from dittybag.protocol.current_request import current_request_id

_VALID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


class RequestIds:
    """Adds `X-Request-Id` to every response: the id from the request if it is valid, or a new one."""

    def __init__(self) -> None:
        # A counter is cheaper than a random id. The prefix distinguishes processes.
        self._prefix = os.urandom(6).hex().encode()
        self._counter = count(1)

    def __call__(self, request: HttpRequest) -> None:
        found = request.headers.get_all(REQUEST_ID)
        if len(found) == 1 and _VALID.fullmatch(found[0]) is not None:
            request.id = found[0].encode()
        else:
            request.id = b"%b-%x" % (self._prefix, next(self._counter))
        # Each request has a task, and so a context, of its own.
        current_request_id.set(request.id)
