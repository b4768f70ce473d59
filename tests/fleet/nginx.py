"""nginx for tests, run with the configuration that we deploy."""

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
from tests.wire import ROOT

CONFIGURATION: Final = ROOT / "deploy" / "nginx.conf"

#: What the system's own configuration has around ours; everything it writes stays in the folder.
_AROUND: Final = """\
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


def program() -> str:
    """Where nginx is. It is installed first, if it is not there and we may do that."""
    if NGINX.find() is None:
        programs.main()
    return NGINX.required()


def configure(folder: Path, servers: Sequence[str], port: int) -> Path:
    """Put our configuration into a folder, with other addresses; the file that nginx is to be given."""
    text = CONFIGURATION.read_text()
    listed = re.compile(r"(?:^ *server dittybag-\d+:8765 (.*);\n)+", re.MULTILINE)
    ours = "".join(rf"    server {server} \1;" + "\n" for server in servers)
    for pattern, instead in (
        (listed, ours),
        (re.compile(r"\blisten 80;"), f"listen 127.0.0.1:{port};"),
        (re.compile(r"/var/log/nginx/"), f"{folder}/"),
    ):
        text, count = pattern.subn(instead, text)
        assert count == 1, (pattern.pattern, count)
    (folder / "dittybag.conf").write_text(text)
    # Its workers would be somebody else's, who may not enter the folder.
    user = f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else ""
    main = folder / "nginx.conf"
    main.write_text(_AROUND.format(user=user, folder=folder))
    return main


def checked(configuration: Path) -> subprocess.CompletedProcess[str]:
    """What nginx itself says of a configuration."""
    return subprocess.run(
        [program(), "-t", "-p", str(configuration.parent), "-c", str(configuration)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@contextmanager
def running(configuration: Path) -> Iterator[None]:
    """nginx, from now on until the end of the block."""
    process = subprocess.Popen(
        [program(), "-p", str(configuration.parent), "-c", str(configuration)],
        stdin=subprocess.DEVNULL,
    )
    try:
        yield
        assert process.poll() is None, (configuration.parent / "error.log").read_text()
    finally:
        # Its workers end with it.
        process.send_signal(signal.SIGTERM)
        process.wait(10)
