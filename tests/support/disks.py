import subprocess
import sys
from pathlib import Path

from django.conf import settings

FILL = """
import os
def fill(folder):
    with open(f"{folder}/filler", "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass
def make_room(folder):
    os.unlink(f"{folder}/filler")
"""


def on_small_disk(
    folder: Path, code: str, environ: dict[str, str], size: str = "512k"
) -> subprocess.CompletedProcess[str]:
    """Run code in a namespace where `folder` (`FOLDER` in the code) is a small file system."""
    mount = f'mount -t tmpfs -o size={size},mode=700 tmpfs "$0" && exec "$@"'
    program = f"FOLDER = {str(folder)!r}\n{FILL}{code}"
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, str(folder), sys.executable, "-c", program]
    return subprocess.run(command, cwd=settings.BASE_DIR, env=environ, capture_output=True, text=True, check=False)
