"""The stdio baseline: a blocking loop that returns responses without any validation."""

import os

from msgspec import Struct
from msgspec.json import Decoder, Encoder


class Arguments(Struct, frozen=True):
    text: str = ""


class Params(Struct, frozen=True):
    arguments: Arguments = Arguments()


class BaselineRequest(Struct, frozen=True):
    method: str
    id: int | str | None = None
    params: Params = Params()


INITIALIZED = (
    b'{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'
    b'"serverInfo":{"name":"echo","version":"1.0"}}'
)
TOOLS = (
    b'{"tools":[{"name":"echo","description":"Returns the text.","inputSchema":'
    b'{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}'
)

RESULTS = {"initialize": INITIALIZED, "tools/list": TOOLS}

encode = Encoder().encode


def respond(request: BaselineRequest) -> bytes:
    if request.method == "tools/call":
        text = encode(request.params.arguments.text)
        result = b'{"content":[{"type":"text","text":%b}]}' % text
    elif request.method in RESULTS:
        result = RESULTS[request.method]
    else:
        error = b'{"code":-32601,"message":"unknown method"}'
        return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (encode(request.id), error)
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (encode(request.id), result)


def main() -> None:
    decode = Decoder(BaselineRequest).decode
    rest = b""
    while chunk := os.read(0, 1 << 18):
        *lines, rest = (rest + chunk).split(b"\n")
        requests = map(decode, lines)
        responses = b"".join([respond(request) for request in requests if request.id is not None])
        while responses:
            responses = responses[os.write(1, responses) :]


if __name__ == "__main__":
    main()
