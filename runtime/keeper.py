"""`python -m runtime.keeper FOLDER NAME...`: runs the servers of a data folder in the background
(runtime/embedded.py).
"""

import contextlib
import fcntl
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from runtime.embedded import START_SECONDS, Home, ServerError, lock_file, make_server, try_lock, wait_for
from runtime.supervisor import ProgramError, Supervisor, Terminal


def main(data_dir: Path, names: Sequence[str]) -> None:
    """Run the keeper in the background. Reports `ready` or an error on standard output, then closes it."""
    if os.fork():
        os._exit(0)  # the caller waits for our answer, not for our end
    os.chdir("/")
    answer = os.dup(1)
    os.dup2(2, 1)  # the log

    def report(word: str) -> None:
        with contextlib.suppress(OSError):
            os.write(answer, word.encode())
        os.close(answer)

    try:
        run_servers(Home(data_dir), names, report)
    except (ServerError, ProgramError) as error:
        report(str(error))
    except OSError as error:
        report(f"The data folder {data_dir} cannot be used: {error}")


def run_servers(home: Home, names: Sequence[str], report: Callable[[str], None]) -> None:
    """Run the servers until SIGTERM or the last lease. Raises ProgramError if they do not answer."""
    with lock_file(home, "keeper") as lock, lock_file(home, "lease") as lease:
        if not wait_for(lambda: try_lock(lock, fcntl.LOCK_EX), 0.3):
            return  # another keeper runs them; the caller sees them answer
        home.make()
        os.truncate(lock, 0)
        os.pwrite(lock, json.dumps({"pid": os.getpid(), "servers": list(names)}).encode(), 0)
        servers = [make_server(home, name) for name in names]
        deadline = time.monotonic() + START_SECONDS

        def all_answer() -> bool:
            silent = [server.name for server in servers if not server.answers()]
            if silent and time.monotonic() > deadline:
                raise ProgramError(f"No answer from {', '.join(silent)} within {START_SECONDS} s. See {home.log}")
            return not silent

        supervisor = Supervisor(servers, say=Terminal("text", "keeper"), stops_together=True, most_signals=math.inf)
        try:
            # Keep the lease until the end, so that new processes wait until the servers are down.
            supervisor.run(
                is_up=all_answer, announce=lambda: report("ready"), is_over=lambda: try_lock(lease, fcntl.LOCK_EX)
            )
        finally:
            for server in servers:
                server.pid_file.unlink(missing_ok=True)
            if home.sockets != home.run:
                with contextlib.suppress(OSError):
                    home.sockets.rmdir()
            os.truncate(lock, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
