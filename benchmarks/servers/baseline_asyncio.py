"""The floor of asyncio on stdio: a stream reader and a loop that responds without any validation."""

import asyncio
import os
import sys

from baseline_stdio import BaselineRequest, respond
from msgspec.json import Decoder


async def main() -> None:
    decode = Decoder(BaselineRequest).decode
    reader = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
    )
    while line := await reader.readline():
        request = decode(line)
        if request.id is not None:
            response = respond(request)
            while response:
                response = response[os.write(1, response) :]


if __name__ == "__main__":
    asyncio.run(main())
