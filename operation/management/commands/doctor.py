from argparse import ArgumentParser
from typing import Any

import msgspec
from django.core.management.base import BaseCommand

from operation.doctor.examination import STATEMENT_SECONDS, examine, worst
from operation.doctor.findings import ERROR, OK, WARNING
from operation.doctor.processes import program_addresses
from storage import postgresql
from storage.connections import site_now


class Command(BaseCommand):
    """Checks the configuration and the servers."""

    help = "Check the configuration, servers and programs, and print what to do. Exits with 1 on an error."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        web, stream, grpc = program_addresses()
        parser.add_argument("--all", action="store_true", help="also print checks that pass")
        parser.add_argument("--json", action="store_true", help="print JSON: {state, findings}")
        parser.add_argument("--web", default=web, metavar="URL", help=f"where web listens ({web})")
        parser.add_argument("--stream", default=stream, metavar="URL", help=f"where stream listens ({stream})")
        parser.add_argument(
            "--grpc", default=grpc, metavar="HOST:PORT", help=f"where gRPC listens ({grpc or 'nowhere'})"
        )

    def handle(self, *args: Any, json: bool, web: str, stream: str, grpc: str, **options: Any) -> None:
        """Print the findings. Exit with 1 on an error."""
        with postgresql.statement_timeout(STATEMENT_SECONDS):
            findings = examine(now=site_now(), web=web, stream=stream, grpc_place=grpc)
        state = worst(findings)
        if json:
            self.stdout.write(msgspec.json.encode({"state": state, "findings": findings}).decode())
        else:
            styles = {OK: self.style.SUCCESS, WARNING: self.style.WARNING, ERROR: self.style.ERROR}
            for finding in findings if options["all"] else [each for each in findings if each.state != OK]:
                self.stdout.write(f"{styles[finding.state](f'{finding.state:>7}')}  {finding.name}: {finding.text}")
                if finding.todo:
                    self.stdout.write(f"         → {finding.todo}")
            counts = {each: sum(finding.state == each for finding in findings) for each in (ERROR, WARNING)}
            self.stdout.write(f"{len(findings)} checks, {counts[ERROR]} errors, {counts[WARNING]} warnings.")
        if state == ERROR:
            raise SystemExit(1)
