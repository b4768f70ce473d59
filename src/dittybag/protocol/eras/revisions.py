"""The protocol revisions that a server supports, and their differences."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dittybag.protocol.eras.versions import V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28


class Revision(Struct, frozen=True, kw_only=True):
    """The properties of a protocol revision, apart from its methods and fields."""

    version: str
    #: Each request names its version in `_meta`; there is no handshake.
    stateless: bool = False
    #: A JSON array of messages is a batch, not an error.
    batches: bool = False
    #: An error response to a message without a readable id has `"id": null`; otherwise it has no id.
    null_id_in_errors: bool = True
    #: Progress notifications may have a `message`.
    progress_messages: bool = True
    #: `structuredContent` and the root of an output schema must be JSON objects.
    structured_objects_only: bool = True
    resource_not_found: int = -32002


REVISIONS: Final = {
    revision.version: revision
    for revision in (
        Revision(version=V2024_11_05, progress_messages=False),
        Revision(version=V2025_03_26, batches=True),
        Revision(version=V2025_06_18),
        Revision(version=V2025_11_25, null_id_in_errors=False),
        Revision(
            version=V2026_07_28,
            stateless=True,
            null_id_in_errors=False,
            structured_objects_only=False,
            resource_not_found=-32602,
        ),
    )
}
