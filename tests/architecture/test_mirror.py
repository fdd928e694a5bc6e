"""tests/ mirrors the source: a module has a test file of its own, or stands here with the reason.

See docs/decisions.md: Files over 350 lines.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

REASONS = {
    "__init__": "a docstring, or what the package hands on",
    "apps": "connects what Django names; every test that starts Django runs it",
    "urls": "names views; tests/architecture/test_access.py walks all of them",
    "signals": "names signals; tests/architecture/test_signals.py walks all of them",
    "models": "columns and constraints, which the tests of the verbs write",
    "tasks": "each calls one function, whose tests run it",
    "receivers": "each calls one function, whose tests run it",
    "forms": "fields of one page, which the tests of the page fill in",
    "export": "a part of the archive that tests/accounts/test_settings.py opens",
    "purge": "a part of what tests/accounts/test_deletion.py takes away",
    "context_processors": "what every page shows",
    "formats": "Django's formats of dates",
}
"""By the name of a module: why it needs no test file of its own."""
PAGES = "templatetags"
"""Tags and filters are tested by the pages that show them."""
HELD = {
    "operation/findings.py": "tests/operation/test_doctor.py",
    "operation/management/commands/document_licences.py": "tests/operation/test_licences.py",
    "accounts/oauth_models.py": "tests/clientapi/test_oauth_api.py",
    "clientapi/account_api.py": "tests/clientapi/test_mastodon_py.py",
    "clientapi/actions.py": "tests/clientapi/test_oauth_api.py",
    "clientapi/bearer.py": "tests/clientapi/test_scopes.py",
    "clientapi/entities.py": "tests/clientapi/test_presenting.py",
    "clientapi/filter_api.py": "tests/clientapi/test_mastodon_py.py",
    "clientapi/instance_api.py": "tests/clientapi/test_mastodon_py.py",
    "clientapi/media_api.py": "tests/clientapi/test_mastodon_py.py",
    "clientapi/notices.py": "tests/clientapi/test_mastodon_py.py",
    "clientapi/paging.py": "tests/clientapi/test_timelines.py",
    "clientapi/operations.py": "tests/clientapi/test_openapi.py",
    "clientapi/other_urls.py": "tests/clientapi/test_scopes.py",
    "clientapi/params.py": "tests/clientapi/test_errors.py",
    "clientapi/people.py": "tests/clientapi/test_presenting.py",
    "clientapi/relationships.py": "tests/clientapi/test_mastodon_py.py",
    "clientapi/report_api.py": "tests/clientapi/test_mastodon_py.py",
    "clientapi/reposters.py": "tests/clientapi/test_mastodon_py.py",
    "clientapi/search_api.py": "tests/clientapi/test_mastodon_py.py",
    "clientapi/streaming_api.py": "tests/clientapi/test_streaming.py",
    "clientapi/streaming_urls.py": "tests/clientapi/test_streaming.py",
    "clientapi/streams.py": "tests/clientapi/test_streaming.py",
    "clientapi/threads.py": "tests/clientapi/test_access.py",
    "clientapi/timeline_api.py": "tests/clientapi/test_timelines.py",
    "clientapi/validator.py": "tests/clientapi/test_oauth_api.py",
    "timeline/above.py": "tests/clientapi/test_timelines.py",
    "web/credentials.py": "tests/clientapi/test_scopes.py",
    "about/announcing.py": "tests/about/test_api.py",
    "about/logo.py": "tests/about/test_admin.py",
    "about/views.py": "tests/about/test_colours.py",
    "accounts/applications.py": "tests/accounts/test_joining.py",
    "accounts/invitations.py": "tests/accounts/test_joining.py",
    "accounts/joining_models.py": "tests/accounts/test_joining.py",
    "runtime/version.py": "tests/about/test_api.py",
    "about/actions.py": "tests/about/test_site.py",
    "accounts/access.py": "tests/accounts/test_sessions.py",
    "accounts/actions.py": "tests/accounts/test_api.py",
    "accounts/big_v_admin.py": "tests/accounts/test_admin.py",
    "accounts/grants.py": "tests/stream/test_hub.py",
    "accounts/management/commands/admin_link.py": "tests/accounts/test_first_admin.py",
    "accounts/names.py": "tests/accounts/test_naming.py",
    "accounts/presenting.py": "tests/accounts/test_settings.py",
    "accounts/review.py": "tests/moderation/test_sessions.py",
    "accounts/rows.py": "tests/architecture/test_plans.py",
    "accounts/second_factors.py": "tests/accounts/test_sign_in.py",
    "accounts/security_api.py": "tests/accounts/test_recovery.py",
    "accounts/security_views.py": "tests/accounts/test_addresses.py",
    "accounts/sign_in_views.py": "tests/accounts/test_recovery.py",
    "accounts/management/commands/seal_factors.py": "tests/accounts/test_sealing.py",
    "accounts/site.py": "tests/accounts/test_admin.py",
    "accounts/tokens.py": "tests/accounts/test_api.py",
    "accounts/user_admin.py": "tests/accounts/test_admin.py",
    "community/dataset.py": "tests/community/test_load.py",
    "community/demo_canvas.py": "tests/community/test_demo_pictures.py",
    "community/demo_faces.py": "tests/community/test_demo_pictures.py",
    "community/demo_notifications.py": "tests/community/test_demo.py",
    "community/demo_scenes.py": "tests/community/test_demo_pictures.py",
    "community/demo_things.py": "tests/community/test_demo_pictures.py",
    "community/dataset_files.py": "tests/community/test_load_media.py",
    "community/checking.py": "tests/community/test_load.py",
    "community/naming.py": "tests/community/test_names.py",
    "community/problems.py": "tests/community/test_load.py",
    "community/repeated.py": "tests/community/test_load.py",
    "community/importing.py": "tests/community/test_load.py",
    "community/importing_media.py": "tests/community/test_load_media.py",
    "mail/actions.py": "tests/mail/test_sending.py",
    "mail/admin.py": "tests/mail/test_letters.py",
    "mail/console.py": "tests/mail/test_letters.py",
    "discover/decay.py": "tests/discover/test_postgres.py",
    "discover/filling.py": "tests/discover/test_indexing.py",
    "discover/history_api.py": "tests/discover/test_history.py",
    "discover/history_views.py": "tests/discover/test_history.py",
    "discover/interests.py": "tests/discover/test_opensearch.py",
    "discover/management/commands/discover_index.py": "tests/discover/test_indexing.py",
    "discover/opensearch_server.py": "tests/discover/test_opensearch.py",
    "discover/popular.py": "tests/public/test_views.py",
    "discover/recall.py": "tests/discover/test_postgres.py",
    "discover/recallers.py": "tests/discover/test_opensearch.py",
    "feedsite/asgi.py": "tests/stream/test_hub.py",
    "feedsite/celery.py": "tests/storage/test_queue.py",
    "items/filter_book.py": "tests/clientapi/test_streamed.py",
    "items/hits.py": "tests/items/test_hostile.py",
    "items/hydrate.py": "tests/items/test_api.py",
    "items/indexing.py": "tests/items/test_reindex.py",
    "items/pin_views.py": "tests/items/test_pins.py",
    "items/newest.py": "tests/public/test_views.py",
    "items/previews.py": "tests/public/test_views.py",
    "items/profile.py": "tests/items/test_listing.py",
    "items/query.py": "tests/items/test_search.py",
    "items/search_views.py": "tests/items/test_finding.py",
    "items/tags.py": "tests/items/test_finding.py",
    "items/visibility.py": "tests/architecture/test_access.py",
    "live/host_views.py": "tests/live/test_views.py",
    "live/hosting.py": "tests/live/test_actions.py",
    "live/hydrate.py": "tests/moderation/test_sessions.py",
    "live/measuring.py": "tests/live/test_lineup.py",
    "live/oracle.py": "tests/properties/test_live.py",
    "live/pull.py": "tests/live/test_replays.py",
    "live/review.py": "tests/moderation/test_sessions.py",
    "live/snapshot.py": "tests/live/test_feed.py",
    "live/walk.py": "tests/live/test_feed.py",
    "media/actions.py": "tests/media/test_api.py",
    "media/attaching.py": "tests/items/test_attachments.py",
    "media/decoder.py": "tests/media/test_bad_files.py",
    "media/decoding.py": "tests/media/test_bad_files.py",
    "media/kinds.py": "tests/media/test_bad_files.py",
    "media/offering.py": "tests/moderation/test_hashes.py",
    "media/objects.py": "tests/media/test_api.py",
    "media/store.py": "tests/media/test_sweeping.py",
    "media/videos.py": "tests/media/test_bad_files.py",
    "moderation/picture_admin.py": "tests/moderation/test_hashes.py",
    "moderation/case_admin.py": "tests/moderation/test_admin.py",
    "moderation/log.py": "tests/moderation/test_actions.py",
    "moderation/rule_admin.py": "tests/moderation/test_admin.py",
    "moderation/sentences.py": "tests/moderation/test_admin.py",
    "moderation/subjects.py": "tests/moderation/test_sessions.py",
    "moderation/user_admin.py": "tests/moderation/test_by_hand.py",
    "notifications/feed.py": "tests/notifications/test_actions.py",
    "notifications/ungrouped.py": "tests/clientapi/test_notification_api.py",
    "notifications/sessions.py": "tests/live/test_reminders.py",
    "operation/curves.py": "tests/operation/test_plots.py",
    "operation/graphs.py": "tests/operation/test_simulation.py",
    "operation/management/commands/restore.py": "tests/operation/test_backup.py",
    "operation/management/commands/simulate.py": "tests/operation/test_simulation.py",
    "moving/actions.py": "tests/moving/test_importing.py",
    "moving/archive.py": "tests/moving/test_hostile.py",
    "moving/export.py": "tests/moving/test_importing.py",
    "moving/extras.py": "tests/moving/test_importing.py",
    "moving/media.py": "tests/moving/test_importing.py",
    "moving/outbox.py": "tests/moving/test_hostile.py",
    "relations/csv_files.py": "tests/relations/test_importing.py",
    "relations/csv_views.py": "tests/relations/test_importing.py",
    "public/api.py": "tests/public/test_column.py",
    "public/atom.py": "tests/public/test_views.py",
    "relations/people.py": "tests/relations/test_api.py",
    "relations/suggestions.py": "tests/relations/test_views.py",
    "relations/visibility.py": "tests/web/test_rest.py",
    "runtime/cluster_address.py": "tests/storage/test_cluster.py",
    "runtime/disk.py": "tests/operation/test_backup.py",
    "runtime/counting.py": "tests/runtime/test_metrics.py",
    "runtime/management/commands/bench.py": "tests/benchmarks/test_bench.py",
    "runtime/management/commands/document_settings.py": "tests/runtime/test_environment.py",
    "runtime/management/commands/migrate.py": "tests/storage/test_migrations.py",
    "runtime/management/commands/program.py": "tests/runtime/test_supervisor.py",
    "runtime/management/commands/prepare.py": "tests/runtime/test_supervisor.py",
    "runtime/management/commands/up.py": "tests/runtime/test_supervisor.py",
    "runtime/nursery.py": "tests/runtime/test_supervisor.py",
    "runtime/preloaded.py": "tests/runtime/test_supervisor.py",
    "runtime/up.py": "tests/runtime/test_supervisor.py",
    "runtime/family.py": "tests/runtime/test_processes.py",
    "runtime/option_kinds.py": "tests/runtime/test_environment.py",
    "runtime/options.py": "tests/runtime/test_environment.py",
    "runtime/programs.py": "tests/runtime/test_supervisor.py",
    "seen/access.py": "tests/seen/test_api.py",
    "seen/admin.py": "tests/seen/test_status.py",
    "seen/bitmap_bloom.py": "tests/seen/test_bloom.py",
    "seen/checker.py": "tests/seen/test_waiting.py",
    "seen/filter_store.py": "tests/seen/test_store.py",
    "seen/hashing.py": "tests/seen/test_filters.py",
    "seen/lmdb_store.py": "tests/seen/test_store.py",
    "seen/management/commands/played_grpc.py": "tests/seen/test_rpc.py",
    "seen/management/commands/played_migrate.py": "tests/seen/migration/test_migrate.py",
    "seen/management/commands/played_status.py": "tests/seen/test_status.py",
    "seen/migration/old.py": "tests/seen/migration/test_migrate.py",
    "seen/module_bloom.py": "tests/seen/test_bloom.py",
    "seen/played.py": "tests/seen/migration/test_migrate.py",
    "seen/probes.py": "tests/seen/test_status.py",
    "seen/redis_store.py": "tests/seen/test_store.py",
    "seen/reporting.py": "tests/seen/test_api.py",
    "seen/ring.py": "tests/seen/test_merging.py",
    "seen/sample.py": "tests/seen/test_forgetting.py",
    "seen/state.py": "tests/seen/test_status.py",
    "seen/usage.py": "tests/discover/test_exclusions.py",
    "storage/breaker.py": "tests/storage/test_connections.py",
    "storage/cache.py": "tests/discover/test_cache.py",
    "storage/deliveries.py": "tests/timeline/test_fanout.py",
    "storage/draws.py": "tests/storage/test_migrations.py",
    "storage/indexes.py": "tests/storage/test_migrations.py",
    "storage/keys.py": "tests/architecture/test_plans.py",
    "storage/postgresql/base.py": "tests/storage/test_replica.py",
    "storage/replica/base.py": "tests/storage/test_replica.py",
    "stream/api.py": "tests/stream/test_hub.py",
    "stream/attempts.py": "tests/stream/test_hub.py",
    "stream/connections.py": "tests/stream/test_hub.py",
    "stream/credentials.py": "tests/faults/test_apps.py",
    "stream/dialects.py": "tests/stream/test_hub.py",
    "stream/event_log.py": "tests/faults/test_stream.py",
    "stream/sockets.py": "tests/clientapi/test_streaming.py",
    "stream/telling.py": "tests/faults/test_stream.py",
    "stream/threads.py": "tests/stream/test_hub.py",
    "stream/watching.py": "tests/clientapi/test_streaming.py",
    "timeline/active_fans.py": "tests/timeline/test_fanout.py",
    "timeline/backfill.py": "tests/timeline/test_fanout.py",
    "timeline/explanation.py": "tests/timeline/test_explain.py",
    "timeline/fold.py": "tests/properties/test_fold.py",
    "timeline/hydrate.py": "tests/timeline/test_home.py",
    "timeline/inbox.py": "tests/timeline/test_return.py",
    "timeline/management/commands/big_v.py": "tests/accounts/test_big_v.py",
    "timeline/management/commands/explain_home.py": "tests/timeline/test_explain.py",
    "timeline/management/commands/timeline_check.py": "tests/timeline/test_check.py",
    "timeline/oracle.py": "tests/properties/test_home.py",
    "timeline/outbox.py": "tests/timeline/test_home.py",
    "timeline/pull.py": "tests/timeline/test_return.py",
    "timeline/reading.py": "tests/timeline/test_home.py",
    "timeline/welcome.py": "tests/browser/test_welcome.py",
    "web/admin.py": "tests/moderation/test_by_hand.py",
    "web/management/commands/await_servers.py": "tests/runtime/test_supervisor.py",
    "web/openapi.py": "tests/schema/test_schema.py",
    "web/outage.py": "tests/faults/test_postgresql.py",
    "web/paginator.py": "tests/relations/test_admin.py",
    "web/rates.py": "tests/web/test_rest.py",
    "web/strict_json.py": "tests/web/test_rest.py",
    "web/uploads.py": "tests/media/test_bad_files.py",
    "web/static_files.py": "tests/operation/test_proxies.py",
}
"""Modules that are parts of one story: the test file that holds them."""


def sources() -> Iterator[Path]:
    """The modules of the house."""
    found = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
    )
    for name in found.stdout.split():
        path = Path(name)
        is_ours = len(path.parts) > 1 and path.parts[0] not in ("tests", "benchmarks", "docs")
        if is_ours and not {"migrations", "generated"} & set(path.parts):
            yield path


def own(path: Path) -> Path:
    """Where a module's own test file is; those of a package's commands stand beside the others of the package."""
    folder = Path(path.parts[0]) if {"management", PAGES} & set(path.parts) else path.parent
    return Path("tests", folder, f"test_{path.stem}.py")


def test_every_module_has_a_test_file_or_a_reason() -> None:
    without = [
        str(path)
        for path in sources()
        if not (settings.BASE_DIR / own(path)).exists()
        and path.stem not in REASONS
        and PAGES not in path.parts
        and str(path) not in HELD
    ]
    assert without == []


@pytest.mark.parametrize(("module", "test"), HELD.items())
def test_the_list_is_of_now(module: str, test: str) -> None:
    assert (settings.BASE_DIR / module).exists()
    assert (settings.BASE_DIR / test).exists()
    assert not (settings.BASE_DIR / own(Path(module))).exists(), f"{module} has a test file of its own"
