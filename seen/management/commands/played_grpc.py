import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from seen.rpc import RpcServer
from storage import postgresql

THREADS = 4
"""Calls at the same time. Each thread has a connection to PostgreSQL."""
GRACE_SECONDS = 3.0
"""Less than the supervisor's."""
ENDS = (signal.SIGTERM, signal.SIGINT)


class Command(BaseCommand):
    """Serves seen/seen.proto on FEEDSITE_GRPC_HOST and FEEDSITE_GRPC_PORT."""

    help = "Serve the played history over gRPC (seen/seen.proto) on FEEDSITE_GRPC_PORT."

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until a signal. Raises CommandError without a port, or if it cannot listen."""
        if not settings.GRPC_PORT:
            raise CommandError("FEEDSITE_GRPC_PORT is not set. Set it to the port to listen on.")
        postgresql.set_process_timeout(settings.DATABASE_TIMEOUT_SECONDS)
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)  # also for the threads that start next
        host = f"[{settings.GRPC_HOST}]" if ":" in settings.GRPC_HOST else settings.GRPC_HOST
        try:
            server = RpcServer(f"{host}:{settings.GRPC_PORT}", threads=THREADS)
        except RuntimeError as error:
            raise CommandError(f"gRPC cannot listen on {host}, port {settings.GRPC_PORT}: {error}") from error
        server.start()
        signal.sigwait(ENDS)
        server.stop(GRACE_SECONDS)
