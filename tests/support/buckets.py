import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from media.bucket import Bucket
from runtime.addresses import parse_bucket
from runtime.embedded import die_with_parent, wait_for
from tests.support.clusters import free_ports

SECRET = "a/secret+of=thirteen"


class BucketServer:
    """moto's server, which keeps data in memory."""

    def __init__(self, folder: Path) -> None:
        self.port, _ = free_ports()
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        with (folder / "bucket.log").open("wb") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, preexec_fn=die_with_parent(signal.SIGKILL)
            )
        assert wait_for(self.answers, 120), (folder / "bucket.log").read_text()

    def answers(self) -> bool:
        try:
            return self.get("/moto-api/").status == 200
        except (OSError, http.client.HTTPException):
            return False

    def get(self, path: str) -> http.client.HTTPResponse:
        """Send an anonymous request. The body stays unread."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            client.request("GET", path)
            return client.getresponse()
        finally:
            client.close()

    def made(self, name: str) -> str:
        address = f"s3://someone:a%2Fsecret+of=thirteen@127.0.0.1/{name}?endpoint={self.url}"
        bucket = Bucket(parse_bucket(address), 30)
        bucket.client.create_bucket(Bucket=name)
        return address

    def publish(self, address: str) -> None:
        """Let everybody read, as in docs/servers.md."""
        bucket = Bucket(parse_bucket(address), 30)
        files = f"arn:aws:s3:::{bucket.address.name}/*"
        allowed = [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": files}]
        policy = json.dumps({"Version": "2012-10-17", "Statement": allowed})
        bucket.client.put_bucket_policy(Bucket=bucket.address.name, Policy=policy)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It takes connections and answers nothing."""
        os.kill(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def names_in(address: str) -> set[str]:
    bucket = Bucket(parse_bucket(address), 30)
    found = bucket.client.list_objects_v2(Bucket=bucket.address.name)
    return {each["Key"] for each in found.get("Contents", ())}
