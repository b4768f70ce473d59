"""Runs a Docker engine from Debian's packages, with base images made by debootstrap.

It stands in where Docker and its registry are out of reach, on Debian as root. The engine and all its mounts
live in namespaces of their own, so they end with the process. It uses the machine's network, but adds no
firewall rules.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.fleet.server_fleet import wait_until
from tests.programs import DEBOOTSTRAP, IP
from tests.stdio_server_process import ROOT

_SUITE: Final = "trixie"
_HOME: Final = ROOT / ".cache" / "containers"
_ROOT: Final = _HOME / "root"
_BASE: Final = _HOME / "debian.tar"
#: Mounted at the same path inside, so that the engine can mount files of the trial.
_SHARED: Final = _HOME / "shared"
_PACKAGES: Final = ("docker.io", "docker-cli", "docker-buildx", "docker-compose", "iptables", "iproute2")
_CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
_SECONDS: Final = 1200

#: Run with the root as `$1` and the folder of the engine as `$2`.
_ENTER: Final = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mkdir -p "$1/var/lib/docker" "$1$2/shared" "$1/old"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --rbind /sys "$1/sys"
mount -t tmpfs tmpfs "$1/run"
"""
_INSTALL: Final = (
    _ENTER + 'chroot "$1" sh -c "apt-get update -qq && apt-get install -qq -y --no-install-recommends $3"'
)
_START: Final = (
    _ENTER
    + """
mount --bind "$2/state" "$1/var/lib/docker"
mount --bind "$2/shared" "$1$2/shared"
cd "$1"
pivot_root . old
umount -l /old
exec dockerd --host "unix://$2/shared/docker.sock" --exec-root /run/docker --pidfile /run/docker.pid \
    --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false
"""
)

_APT: Final = "apt-get update -qq && apt-get install -qq -y --no-install-recommends"

#: The Dockerfiles of the base images. They have the users, folders and entry points that ours rely on.
_IMAGES: Final = {
    "python:3.13-slim-trixie": f"""\
FROM debian
RUN {_APT} python3.13 python3.13-venv python3-pip && ln -s /usr/bin/python3.13 /usr/local/bin/python
COPY pip.conf /etc/pip.conf
""",
    "postgres:17": f"""\
FROM debian
ENV LANG=C.UTF-8 PGDATA=/var/lib/postgresql/data PATH=$PATH:/usr/lib/postgresql/17/bin
RUN useradd --system --uid 999 --user-group --home-dir /var/lib/postgresql postgres
RUN {_APT} postgresql-common gosu \\
    && echo "create_main_cluster = false" >> /etc/postgresql-common/createcluster.conf && {_APT} postgresql-17
RUN install --directory --owner postgres --group postgres --mode 3777 /var/run/postgresql \\
    && install --directory --owner postgres --group postgres --mode 1777 "$PGDATA"
VOLUME /var/lib/postgresql/data
STOPSIGNAL SIGINT
COPY --chmod=755 postgres.sh /entry.sh
ENTRYPOINT ["/entry.sh"]
""",
    "nginx:1.30": f"""\
FROM debian
RUN useradd --system --uid 101 --user-group --no-create-home nginx && {_APT} nginx \\
    && mkdir --parents /var/cache/nginx && touch /etc/nginx/conf.d/default.conf \\
    && ln -sf /dev/stdout /var/log/nginx/access.log && ln -sf /dev/stderr /var/log/nginx/error.log
COPY nginx.conf /etc/nginx/nginx.conf
STOPSIGNAL SIGQUIT
CMD ["nginx", "-g", "daemon off;"]
""",
}

#: What the official entry points do: prepare the volume as root, then continue as the user postgres.
_POSTGRES: Final = """\
#!/bin/sh
set -e
if [ "$(id -u)" = 0 ]; then
    chmod 700 "$PGDATA"
    find "$PGDATA" ! -user postgres -exec chown postgres {} +
    exec gosu postgres "$0"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb --username postgres --pwfile "$POSTGRES_PASSWORD_FILE" --auth-local trust --auth-host scram-sha-256
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    pg_ctl --wait --options "-c listen_addresses=''" start
    for file in /docker-entrypoint-initdb.d/*.sql; do
        psql --set ON_ERROR_STOP=1 --no-psqlrc --username postgres --dbname postgres --file "$file"
    done
    pg_ctl --wait stop
fi
exec postgres -c "listen_addresses=*"
"""

_NGINX: Final = """\
user nginx;
worker_processes auto;
error_log /var/log/nginx/error.log notice;
pid /run/nginx.pid;
events { worker_connections 1024; }
http {
    client_body_temp_path /var/cache/nginx/client_temp;
    proxy_temp_path /var/cache/nginx/proxy_temp;
    fastcgi_temp_path /var/cache/nginx/fastcgi_temp;
    uwsgi_temp_path /var/cache/nginx/uwsgi_temp;
    scgi_temp_path /var/cache/nginx/scgi_temp;
    include /etc/nginx/conf.d/*.conf;
}
"""


@contextmanager
def run_engine() -> Iterator[dict[str, str]]:
    """Run the engine, which has the base images. Yields the environment in which `docker` uses it."""
    _install()
    for name in ("state", "shared"):
        (_HOME / name).mkdir(exist_ok=True)
    socket = _SHARED / "docker.sock"
    socket.unlink(missing_ok=True)
    before = _bridges()
    with (_HOME / "engine.log").open("wb") as log:
        process = subprocess.Popen(_in_namespaces(_START), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        environment = {
            "DOCKER_HOST": f"unix://{socket}",
            "DOCKER_CONFIG": str(_HOME / "config"),
            "TMPDIR": str(_SHARED),
            "PATH": f"{_HOME / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }
        wait_until(lambda: _is_running(process, environment), "the engine runs", 60)
        _make_images(environment)
        yield environment
    finally:
        # This ends the namespaces, and with them the engine, the containers and the mounts.
        process.kill()
        process.wait(10)
        for link in _bridges() - before:
            subprocess.run([IP.require(), "link", "delete", link], check=False)


def _install() -> None:
    """Make the root file system of the engine, and the base of all images, unless they exist."""
    if _ROOT.is_dir():
        return
    print(f"Installing Docker from Debian's packages in {_HOME.relative_to(ROOT)} ...", flush=True)
    building = _HOME / "building"
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    _run(
        DEBOOTSTRAP.require(),
        "--variant=minbase",
        "--include=ca-certificates",
        _SUITE,
        str(building),
        _mirror(),
    )
    # The registries of this machine may have certificates of their own.
    shutil.copy(_CERTIFICATES, building / _CERTIFICATES.relative_to("/"))
    _run(
        "tar",
        "--create",
        "--file",
        str(_BASE),
        "--exclude=./var/cache/apt/archives/*.deb",
        "-C",
        str(building),
        ".",
    )
    shutil.copy("/etc/resolv.conf", building / "etc" / "resolv.conf")
    _run(*_in_namespaces(_INSTALL, building))
    for folder, names in (
        ("bin", ["bin/docker"]),
        ("config/cli-plugins", ["docker-buildx", "docker-compose"]),
    ):
        (_HOME / folder).mkdir(parents=True, exist_ok=True)
        for name in names:
            path = name if "/" in name else f"libexec/docker/cli-plugins/{name}"
            link = _HOME / folder / Path(name).name
            link.unlink(missing_ok=True)
            link.symlink_to(_ROOT / "usr" / path)
    building.rename(_ROOT)


def _in_namespaces(script: str, root: Path = _ROOT) -> list[str]:
    """Return the command that runs a script, whose mounts and processes end with it, and it with us."""
    namespaces = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"]
    return [*namespaces, "sh", "-c", script, "sh", str(root), str(_HOME), " ".join(_PACKAGES)]


def _mirror() -> str:
    """Return the archive of Debian that this machine uses."""
    listed = _run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian", "Component: main")
    return next(line for line in listed.split() if not line.rstrip("/").endswith("-security"))


def _pip_settings() -> str:
    """Return the settings with which pip reaches the registry of this machine."""
    listed = _run(sys.executable, "-m", "pip", "config", "list")
    found = re.findall(r"\.(index-url|timeout)='(.*)'$", listed, re.MULTILINE)
    lines = [f"{name} = {value}" for name, value in dict([*found, ("cert", str(_CERTIFICATES))]).items()]
    return "\n".join(["[global]", *lines, ""])


def _bridges() -> set[str]:
    """Return the bridges of container engines on this machine."""
    return {link.name for link in Path("/sys/class/net").iterdir() if re.match(r"docker\d|br-", link.name)}


def _is_running(process: subprocess.Popen[bytes], environment: dict[str, str]) -> bool:
    assert process.poll() is None, (_HOME / "engine.log").read_text()[-2000:]
    done = subprocess.run(
        ["docker", "version"], env={**os.environ, **environment}, capture_output=True, timeout=30, check=False
    )
    return done.returncode == 0


def _make_images(environment: dict[str, str]) -> None:
    """Build the base images. The engine has those of the last run in its cache."""
    context = _SHARED / "images"
    context.mkdir(exist_ok=True)
    for name, text in (("pip.conf", _pip_settings()), ("postgres.sh", _POSTGRES), ("nginx.conf", _NGINX)):
        (context / name).write_text(text)
    if not _run("docker", "images", "--quiet", "debian", env=environment):
        _run("docker", "import", str(_BASE), "debian", env=environment)
    for tag, text in _IMAGES.items():
        print(f"Building a stand-in for {tag} ...", flush=True)
        (context / "Dockerfile").write_text(text)
        _run("docker", "build", "--network", "host", "--tag", tag, str(context), env=environment)


def _run(*command: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command[:3])}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout
