"""A Debian with its own files, processes and network. Only packages come from outside. `STAND_INS` replaces systemd."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.embedded import die_with_parent

MIRROR = "http://deb.debian.org/debian"
AUTHORITIES = Path("/usr/local/share/ca-certificates")
NEEDED = ("apt-get", "dpkg-deb", "unshare", "nsenter", "pivot_root", "ip")
MACHINE = """
ip link set lo up
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/run"
mkdir "$1/run/lock"
cd "$1"
pivot_root . mnt  # not chroot: Docker enters containers by their namespaces
umount --lazy /mnt
echo made
exec sleep infinity
"""
ENVIRON = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "DEBIAN_FRONTEND": "noninteractive",
    # pip and uv trust what Debian and the tests' machine trust.
    "PIP_CERT": "/etc/ssl/certs/ca-certificates.crt",
    "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
}
FROM_HERE = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT")


class Debian:
    def __init__(self, root: Path, pid: int) -> None:
        self.root, self.pid = root, pid

    def run(self, lines: str, *, online: bool = False) -> subprocess.CompletedProcess[str]:
        """Use a root shell that stops at the first error. `online` uses this machine's network."""
        environ = ENVIRON | {name: os.environ[name] for name in FROM_HERE if name in os.environ}
        inside = ["env", "-i", *(f"{name}={value}" for name, value in environ.items())]
        space = ["nsenter", "--target", str(self.pid), "--mount", "--pid", *(() if online else ("--net",)), "--"]
        return subprocess.run(
            [*space, *inside, "bash", "-ec", lines],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def put(self, path: str, text: str, mode: int = 0o755) -> None:
        file = self.root / path.lstrip("/")
        file.write_text(text)
        file.chmod(mode)


@contextlib.contextmanager
def debian(suite: str) -> Iterator[Debian]:
    """Skips the test without root, or without access to Debian's packages."""
    if os.geteuid():
        pytest.skip("only root makes a Debian of its own")
    environ = os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    if missing := [name for name in NEEDED if shutil.which(name, path=environ["PATH"]) is None]:
        pytest.skip(f"{', '.join(missing)} is not here")
    folder = Path(tempfile.mkdtemp(prefix="feedsite-debian-"))
    try:
        root = folder / "root"
        bootstrap(suite, folder, root, environ)
        for path in ("/etc/resolv.conf", "/etc/hosts"):
            shutil.copy(path, root / path.lstrip("/"))
        if AUTHORITIES.is_dir():
            shutil.copytree(AUTHORITIES, root / str(AUTHORITIES).lstrip("/"), dirs_exist_ok=True)
        space = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "sh", "-ec", MACHINE, "sh", root]
        dies = die_with_parent(signal.SIGKILL)  # and all in it
        with subprocess.Popen(space, env=environ, stdout=subprocess.PIPE, text=True, preexec_fn=dies) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "made\n", "its namespaces are not made"
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                yield Debian(root, int(children[0]))
            finally:
                process.kill()
    finally:
        # Its mounts end with its namespace.
        subprocess.run(["rm", "--recursive", "--force", "--one-file-system", folder], check=True)


def bootstrap(suite: str, folder: Path, root: Path, environ: dict[str, str]) -> None:
    """Use debootstrap, fetched if not installed."""
    program = shutil.which("debootstrap", path=environ["PATH"])
    if program is None:
        fetched = subprocess.run(["apt-get", "download", "debootstrap"], cwd=folder, capture_output=True, check=False)
        if fetched.returncode:
            pytest.skip("debootstrap is not here, and apt does not reach it")
        (package,) = folder.glob("debootstrap_*.deb")
        subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
        program = str(folder / "usr/sbin/debootstrap")
        environ = environ | {"DEBOOTSTRAP_DIR": str(folder / "usr/share/debootstrap")}
    command = ["sh", program, "--variant=minbase", suite, str(root), MIRROR]
    with (folder / "debootstrap.log").open("wb") as log:
        done = subprocess.run(command, env=environ, stdout=log, stderr=log, check=False)
    if done.returncode:
        said = (folder / "debootstrap.log").read_text().splitlines()[-1:]
        pytest.skip(f"no {suite} is to be had here: {shlex.join(said)}")
