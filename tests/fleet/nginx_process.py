"""Runs nginx for tests, with the configuration from `deploy/`."""

from __future__ import annotations

import os
import pwd
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests import programs
from tests.programs import NGINX
from tests.stdio_server_process import ROOT

CONFIGURATION: Final = ROOT / "deploy" / "nginx.conf"

#: The main configuration that includes ours. nginx writes only to the folder.
_MAIN_CONFIGURATION: Final = """\
{user}
daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/dittybag.conf;
}}
"""


def find_nginx() -> str:
    """The path of nginx, which is installed first if that is allowed."""
    if NGINX.find() is None:
        programs.main()
    return NGINX.require()


def configure(folder: Path, servers: Sequence[str], port: int, text: str | None = None) -> Path:
    """Write our configuration to a folder, with other addresses. Returns the main configuration file."""
    text = CONFIGURATION.read_text() if text is None else text
    listed = re.compile(r"(?:^ *server dittybag-\d+:8765 (.*);\n)+", re.MULTILINE)
    ours = "".join(rf"    server {server} \1;" + "\n" for server in servers)
    for pattern, replacement in (
        (listed, ours),
        (re.compile(r"\blisten 80;"), f"listen 127.0.0.1:{port};"),
        (re.compile(r"/var/log/nginx/"), f"{folder}/"),
    ):
        text, count = pattern.subn(replacement, text)
        assert count == 1, (pattern.pattern, count)
    (folder / "dittybag.conf").write_text(text)
    # By default, workers run as another user, who cannot access the folder.
    user = f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else ""
    main = folder / "nginx.conf"
    main.write_text(_MAIN_CONFIGURATION.format(user=user, folder=folder))
    return main


def check_configuration(configuration: Path) -> subprocess.CompletedProcess[str]:
    """Let nginx check a configuration."""
    return subprocess.run(
        [find_nginx(), "-t", "-p", str(configuration.parent), "-c", str(configuration)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@contextmanager
def run_nginx(configuration: Path) -> Iterator[None]:
    """Run nginx until the end of the block."""
    process = subprocess.Popen(
        [find_nginx(), "-p", str(configuration.parent), "-c", str(configuration)],
        stdin=subprocess.DEVNULL,
    )
    try:
        yield
        assert process.poll() is None, (configuration.parent / "error.log").read_text()
    finally:
        # This also ends its workers.
        process.send_signal(signal.SIGTERM)
        process.wait(10)
