"""Minimal valid PNG and WAV files."""

from __future__ import annotations

import struct
import zlib
from typing import Final


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _red_pixel() -> bytes:
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00\xff\x00\x00")
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def _silence() -> bytes:
    layout = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
    samples = b"\x00\x00"
    body = b"WAVEfmt " + struct.pack("<I", len(layout)) + layout
    body += b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


#: One red pixel.
PNG: Final = _red_pixel()
#: One silent sample.
WAV: Final = _silence()
