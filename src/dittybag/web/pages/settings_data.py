"""The Data section of Settings: import, export, backups and checks."""

from __future__ import annotations

import time
from typing import Final

from dittybag.domain.display import format_count
from dittybag.domain.errors import NotAllowed
from dittybag.domain.health import fixes_of
from dittybag.domain.imports import FORMATS, ImportResult
from dittybag.web.browser_requests import StreamingResponse, WebRequest, WebResponse, json_response, redirect
from dittybag.web.file_download import file_response
from dittybag.web.pages.settings_sections import render_section, require_admin
from dittybag.web.web_context import MaintenanceFailed

#: The maximum size of a file to import; larger ones are imported on the command line.
UPLOAD_BYTES: Final = 16 * 1024 * 1024


async def show_data(request: WebRequest, *, status: int = 200, problem: str = "") -> WebResponse:
    """Show how to import, export, back up and check the data.

    In the query, `key` previews the import of an upload, and `check` runs the checks, which change nothing.
    """
    require_admin(request)
    maintenance = request.context.maintenance
    key, preview, findings = request.query.get("key", ""), None, None
    try:
        if key and not problem:
            _require_write_access(request)
            preview = await _import(request, key, dry_run=True)
        if request.query.get("check") == "1" and not problem:
            findings = await maintenance.check()
    except MaintenanceFailed as failed:
        status, problem = 409, str(failed)
    return render_section(
        request,
        "data",
        status=status,
        problem=problem,
        preview=preview,
        upload=key,
        upload_bytes=UPLOAD_BYTES,
        formats=FORMATS,
        findings=findings,
        fixes=fixes_of(findings or ()),
        backups=await maintenance.backups(),
        has_file=maintenance.has_file,
        is_automatic=maintenance.makes_automatic_backups,
    )


def _require_write_access(request: WebRequest) -> None:
    if request.context.read_only:
        raise NotAllowed("This server is read-only: it was started with --read-only")


async def export(request: WebRequest) -> WebResponse | StreamingResponse:
    """Download the whole workspace."""
    require_admin(request)
    try:
        path = await request.context.maintenance.export()
    except MaintenanceFailed as failed:
        return await show_data(request, status=409, problem=str(failed))
    return file_response(path, f"dittybag-{time.strftime('%Y-%m-%d')}.json", delete=True)


async def upload(request: WebRequest) -> WebResponse:
    """Keep an uploaded file, and respond with the address of the preview as JSON."""
    require_admin(request)
    content = await request.body(UPLOAD_BYTES)
    try:
        key = await request.context.maintenance.keep_upload(request.query.get("name", ""), content)
    except MaintenanceFailed as failed:
        return json_response({"problem": str(failed)}, 422)
    return json_response({"link": request.link("/settings/data", key=key)})


async def apply_import(request: WebRequest) -> WebResponse:
    """Import an uploaded file, completely or not at all."""
    require_admin(request)
    try:
        done = await _import(request, request.form.get("key", ""), dry_run=False)
    except MaintenanceFailed as failed:
        return await show_data(request, status=422, problem=str(failed))
    counted = ", ".join(format_count(count, kind) for kind, count in done.created.items() if count)
    return redirect(request.link("/activity"), f"Imported {counted or 'nothing new'}")


async def _import(request: WebRequest, key: str, *, dry_run: bool) -> ImportResult:
    return await request.context.maintenance.import_upload(
        key, request.project.name, request.caller.actor, dry_run=dry_run
    )


async def back_up(request: WebRequest) -> WebResponse:
    require_admin(request)
    try:
        made = await request.context.maintenance.back_up()
    except MaintenanceFailed as failed:
        return await show_data(request, status=409, problem=str(failed))
    return redirect(request.link("/settings/data"), f"Made {made.name}")


async def download_backup(request: WebRequest) -> WebResponse | StreamingResponse:
    """Download a backup, which has the data and the token hashes of all users."""
    if request.session.name is not None:
        raise NotAllowed("Only the owner of this machine can download backups")
    name = request.query.get("name", "")
    path = await request.context.maintenance.backup_file(name)
    if path is None:
        return await show_data(request, status=404, problem="This backup no longer exists")
    return file_response(path, name)
