"""tests/ mirrors the source: a module has a test file of its own, or stands here with the reason; and so does a test
file that is of no module.
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
    "tasks": "call what does the work, whose tests run it; those of a flow run the tasks as workers do",
    "receivers": "a few lines from a signal to what does the work; the tests of the signal's sender run them",
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
    "a command: reads its options and calls what is tested there": {
        "accounts/management/commands/admin_link.py": "tests/accounts/test_first_admin.py",
        "accounts/management/commands/seal_factors.py": "tests/accounts/test_sealing.py",
        "discover/management/commands/discover_index.py": "tests/discover/test_indexing.py",
        "operation/management/commands/document_licences.py": "tests/operation/test_licences.py",
        "operation/management/commands/restore.py": "tests/operation/test_backup.py",
        "operation/management/commands/simulate.py": "tests/operation/test_simulation.py",
        "runtime/management/commands/bench.py": "tests/benchmarks/test_bench.py",
        "runtime/management/commands/document_settings.py": "tests/runtime/test_environment.py",
        "runtime/management/commands/migrate.py": "tests/storage/test_migrations.py",
        "runtime/management/commands/prepare.py": "tests/runtime/test_supervisor.py",
        "runtime/management/commands/program.py": "tests/runtime/test_supervisor.py",
        "runtime/management/commands/up.py": "tests/runtime/test_supervisor.py",
        "seen/management/commands/played_grpc.py": "tests/seen/test_rpc.py",
        "seen/management/commands/played_migrate.py": "tests/seen/migration/test_migrate.py",
        "seen/management/commands/played_status.py": "tests/seen/test_status.py",
        "timeline/management/commands/big_v.py": "tests/accounts/test_big_v.py",
        "timeline/management/commands/explain_home.py": "tests/timeline/test_explain.py",
        "timeline/management/commands/timeline_check.py": "tests/timeline/test_check.py",
        "web/management/commands/await_servers.py": "tests/runtime/test_supervisor.py",
    },
    "addresses and answers: asked for over HTTP in the flow that they belong to": {
        "about/views.py": "tests/about/test_colours.py",
        "accounts/access.py": "tests/accounts/test_sessions.py",
        "accounts/security_api.py": "tests/accounts/test_recovery.py",
        "accounts/security_views.py": "tests/accounts/test_addresses.py",
        "accounts/joining_views.py": "tests/accounts/test_joining.py",
        "accounts/sign_in_views.py": "tests/accounts/test_recovery.py",
        "accounts/tokens.py": "tests/accounts/test_api.py",
        "clientapi/account_api.py": "tests/clientapi/test_mastodon_py.py",
        "clientapi/bearer.py": "tests/clientapi/test_scopes.py",
        "clientapi/filter_api.py": "tests/clientapi/test_mastodon_py.py",
        "clientapi/instance_api.py": "tests/clientapi/test_mastodon_py.py",
        "clientapi/media_api.py": "tests/clientapi/test_mastodon_py.py",
        "clientapi/operations.py": "tests/clientapi/test_openapi.py",
        "clientapi/other_urls.py": "tests/clientapi/test_scopes.py",
        "clientapi/paging.py": "tests/clientapi/test_timelines.py",
        "clientapi/params.py": "tests/clientapi/test_errors.py",
        "clientapi/report_api.py": "tests/clientapi/test_mastodon_py.py",
        "clientapi/search_api.py": "tests/clientapi/test_mastodon_py.py",
        "clientapi/streaming_api.py": "tests/clientapi/test_streaming.py",
        "clientapi/streaming_urls.py": "tests/clientapi/test_streaming.py",
        "clientapi/timeline_api.py": "tests/clientapi/test_timelines.py",
        "discover/history_api.py": "tests/discover/test_history.py",
        "discover/history_views.py": "tests/discover/test_history.py",
        "feedsite/asgi.py": "tests/stream/test_hub.py",
        "items/pin_views.py": "tests/items/test_pins.py",
        "items/search_views.py": "tests/items/test_finding.py",
        "live/host_views.py": "tests/live/test_views.py",
        "public/api.py": "tests/public/test_column.py",
        "public/atom.py": "tests/public/test_views.py",
        "relations/csv_views.py": "tests/relations/test_importing.py",
        "stream/api.py": "tests/stream/test_hub.py",
        "web/credentials.py": "tests/clientapi/test_scopes.py",
        "web/openapi.py": "tests/schema/test_schema.py",
        "web/paginator.py": "tests/relations/test_admin.py",
        "web/static_files.py": "tests/operation/test_proxies.py",
        "web/strict_json.py": "tests/web/test_rest.py",
        "web/uploads.py": "tests/media/test_bad_files.py",
    },
    "pages of the admin: opened in the tests of the verbs that they offer": {
        "accounts/big_v_admin.py": "tests/accounts/test_admin.py",
        "accounts/site.py": "tests/accounts/test_admin.py",
        "accounts/user_admin.py": "tests/accounts/test_admin.py",
        "mail/admin.py": "tests/mail/test_letters.py",
        "moderation/case_admin.py": "tests/moderation/test_admin.py",
        "moderation/picture_admin.py": "tests/moderation/test_hashes.py",
        "moderation/rule_admin.py": "tests/moderation/test_admin.py",
        "moderation/user_admin.py": "tests/moderation/test_by_hand.py",
        "seen/admin.py": "tests/seen/test_status.py",
        "web/admin.py": "tests/moderation/test_by_hand.py",
    },
    "runs in processes of its own: the tests start the program": {
        "feedsite/celery.py": "tests/storage/test_queue.py",
        "media/decoder.py": "tests/media/test_bad_files.py",
        "runtime/family.py": "tests/runtime/test_processes.py",
        "runtime/nursery.py": "tests/runtime/test_supervisor.py",
        "runtime/preloaded.py": "tests/runtime/test_supervisor.py",
        "runtime/programs.py": "tests/runtime/test_supervisor.py",
        "runtime/up.py": "tests/runtime/test_supervisor.py",
        "stream/attempts.py": "tests/stream/test_hub.py",
        "stream/connections.py": "tests/stream/test_hub.py",
        "stream/credentials.py": "tests/faults/test_apps.py",
        "stream/dialects.py": "tests/stream/test_hub.py",
        "stream/event_log.py": "tests/faults/test_stream.py",
        "stream/sockets.py": "tests/clientapi/test_streaming.py",
        "stream/telling.py": "tests/faults/test_stream.py",
        "stream/threads.py": "tests/stream/test_hub.py",
        "stream/watching.py": "tests/clientapi/test_streaming.py",
    },
    "names, columns or shapes: those that use them are tested there": {
        "accounts/joining_models.py": "tests/accounts/test_joining.py",
        "accounts/names.py": "tests/accounts/test_naming.py",
        "accounts/oauth_models.py": "tests/clientapi/test_oauth_api.py",
        "accounts/rows.py": "tests/architecture/test_plans.py",
        "clientapi/entities.py": "tests/clientapi/test_presenting.py",
        "clientapi/notices.py": "tests/clientapi/test_mastodon_py.py",
        "clientapi/streams.py": "tests/clientapi/test_streaming.py",
        "community/problems.py": "tests/community/test_load.py",
        "discover/recall.py": "tests/discover/test_postgres.py",
        "media/kinds.py": "tests/media/test_bad_files.py",
        "media/objects.py": "tests/media/test_api.py",
        "moderation/subjects.py": "tests/moderation/test_sessions.py",
        "moving/extras.py": "tests/moving/test_importing.py",
        "operation/findings.py": "tests/operation/test_doctor.py",
        "runtime/option_kinds.py": "tests/runtime/test_environment.py",
        "runtime/options.py": "tests/runtime/test_environment.py",
        "runtime/version.py": "tests/about/test_api.py",
        "seen/filter_store.py": "tests/seen/test_store.py",
        "seen/hashing.py": "tests/seen/test_filters.py",
        "seen/state.py": "tests/seen/test_status.py",
        "storage/draws.py": "tests/storage/test_migrations.py",
        "storage/keys.py": "tests/architecture/test_plans.py",
        "timeline/explanation.py": "tests/timeline/test_explain.py",
    },
    "an oracle: the properties compare with it, and would find it wrong": {
        "live/oracle.py": "tests/properties/test_live.py",
        "timeline/oracle.py": "tests/properties/test_home.py",
    },
    "a part of statements: the tests ask what those answer": {
        "clientapi/people.py": "tests/clientapi/test_presenting.py",
        "clientapi/relationships.py": "tests/clientapi/test_mastodon_py.py",
        "clientapi/reposters.py": "tests/clientapi/test_mastodon_py.py",
        "clientapi/threads.py": "tests/clientapi/test_access.py",
        "discover/decay.py": "tests/discover/test_postgres.py",
        "discover/popular.py": "tests/public/test_views.py",
        "items/hits.py": "tests/items/test_hostile.py",
        "items/hydrate.py": "tests/items/test_api.py",
        "items/newest.py": "tests/public/test_views.py",
        "items/profile.py": "tests/items/test_listing.py",
        "items/query.py": "tests/items/test_search.py",
        "items/visibility.py": "tests/architecture/test_access.py",
        "live/hydrate.py": "tests/moderation/test_sessions.py",
        "live/pull.py": "tests/live/test_replays.py",
        "live/visibility.py": "tests/properties/test_live.py",
        "live/walk.py": "tests/live/test_feed.py",
        "notifications/feed.py": "tests/notifications/test_actions.py",
        "relations/people.py": "tests/relations/test_api.py",
        "relations/suggestions.py": "tests/relations/test_views.py",
        "relations/visibility.py": "tests/web/test_rest.py",
        "storage/indexes.py": "tests/storage/test_migrations.py",
        "storage/postgresql/base.py": "tests/storage/test_replica.py",
        "storage/replica/base.py": "tests/storage/test_replica.py",
        "timeline/hydrate.py": "tests/timeline/test_home.py",
        "timeline/pull.py": "tests/timeline/test_return.py",
        "timeline/rules.py": "tests/properties/test_home.py",
        "timeline/senders.py": "tests/timeline/test_lists.py",
    },
    "one step of a flow: its tests go through the whole of it": {
        "about/actions.py": "tests/about/test_site.py",
        "about/announcing.py": "tests/about/test_api.py",
        "about/logo.py": "tests/about/test_admin.py",
        "accounts/actions.py": "tests/accounts/test_api.py",
        "accounts/applications.py": "tests/accounts/test_joining.py",
        "accounts/grants.py": "tests/stream/test_hub.py",
        "accounts/invitations.py": "tests/accounts/test_joining.py",
        "accounts/presenting.py": "tests/accounts/test_settings.py",
        "accounts/review.py": "tests/moderation/test_sessions.py",
        "notifications/forgetting.py": "tests/notifications/test_actions.py",
        "accounts/second_factors.py": "tests/accounts/test_sign_in.py",
        "clientapi/actions.py": "tests/clientapi/test_oauth_api.py",
        "clientapi/validator.py": "tests/clientapi/test_oauth_api.py",
        "community/checking.py": "tests/community/test_load.py",
        "community/dataset.py": "tests/community/test_load.py",
        "community/dataset_files.py": "tests/community/test_load_media.py",
        "community/demo_canvas.py": "tests/community/test_demo_pictures.py",
        "community/demo_faces.py": "tests/community/test_demo_pictures.py",
        "community/demo_notifications.py": "tests/community/test_demo.py",
        "community/demo_scenes.py": "tests/community/test_demo_pictures.py",
        "community/demo_things.py": "tests/community/test_demo_pictures.py",
        "community/importing.py": "tests/community/test_load.py",
        "community/importing_media.py": "tests/community/test_load_media.py",
        "community/naming.py": "tests/community/test_names.py",
        "community/repeated.py": "tests/community/test_load.py",
        "discover/filling.py": "tests/discover/test_indexing.py",
        "discover/interests.py": "tests/discover/test_opensearch.py",
        "discover/opensearch_server.py": "tests/discover/test_opensearch.py",
        "discover/recallers.py": "tests/discover/test_opensearch.py",
        "items/filter_book.py": "tests/clientapi/test_streamed.py",
        "items/indexing.py": "tests/items/test_reindex.py",
        "items/previews.py": "tests/public/test_views.py",
        "items/tags.py": "tests/items/test_finding.py",
        "live/measuring.py": "tests/live/test_lineup.py",
        "live/review.py": "tests/moderation/test_sessions.py",
        "live/snapshot.py": "tests/live/test_feed.py",
        "mail/actions.py": "tests/mail/test_sending.py",
        "mail/console.py": "tests/mail/test_letters.py",
        "media/actions.py": "tests/media/test_api.py",
        "media/attaching.py": "tests/items/test_attachments.py",
        "media/decoding.py": "tests/media/test_bad_files.py",
        "media/offering.py": "tests/moderation/test_hashes.py",
        "media/store.py": "tests/media/test_sweeping.py",
        "media/videos.py": "tests/media/test_bad_files.py",
        "moderation/log.py": "tests/moderation/test_actions.py",
        "moving/actions.py": "tests/moving/test_importing.py",
        "moving/archive.py": "tests/moving/test_hostile.py",
        "moving/export.py": "tests/moving/test_importing.py",
        "moving/media.py": "tests/moving/test_importing.py",
        "moving/outbox.py": "tests/moving/test_hostile.py",
        "notifications/sessions.py": "tests/live/test_reminders.py",
        "notifications/ungrouped.py": "tests/clientapi/test_notification_api.py",
        "operation/curves.py": "tests/operation/test_plots.py",
        "operation/graphs.py": "tests/operation/test_simulation.py",
        "relations/csv_files.py": "tests/relations/test_importing.py",
        "runtime/cluster_address.py": "tests/storage/test_cluster.py",
        "runtime/disk.py": "tests/operation/test_backup.py",
        "runtime/counting.py": "tests/runtime/test_metrics.py",
        "seen/access.py": "tests/seen/test_api.py",
        "seen/bitmap_bloom.py": "tests/seen/test_bloom.py",
        "seen/checker.py": "tests/seen/test_waiting.py",
        "seen/lmdb_store.py": "tests/seen/test_store.py",
        "seen/migration/old.py": "tests/seen/migration/test_migrate.py",
        "seen/module_bloom.py": "tests/seen/test_bloom.py",
        "seen/played.py": "tests/seen/migration/test_migrate.py",
        "seen/probes.py": "tests/seen/test_status.py",
        "seen/redis_store.py": "tests/seen/test_store.py",
        "seen/reporting.py": "tests/seen/test_api.py",
        "seen/ring.py": "tests/seen/test_merging.py",
        "seen/sample.py": "tests/seen/test_forgetting.py",
        "seen/usage.py": "tests/discover/test_exclusions.py",
        "storage/breaker.py": "tests/storage/test_connections.py",
        "storage/deliveries.py": "tests/timeline/test_fanout.py",
        "timeline/above.py": "tests/clientapi/test_timelines.py",
        "timeline/active_fans.py": "tests/timeline/test_fanout.py",
        "timeline/backfill.py": "tests/timeline/test_fanout.py",
        "timeline/fold.py": "tests/properties/test_fold.py",
        "timeline/inbox.py": "tests/timeline/test_return.py",
        "timeline/outbox.py": "tests/timeline/test_home.py",
        "timeline/reading.py": "tests/timeline/test_home.py",
        "timeline/shortening.py": "tests/timeline/test_home.py",
        "web/rates.py": "tests/web/test_rest.py",
    },
}
"""By the reason why they have no test file of their own: modules, and the file in which they are tested."""
FLOWS = {
    "a flow, or a thing that several modules make up": (
        "tests/accounts/test_app_removal.py",
        "tests/accounts/test_deletion.py",
        "tests/accounts/test_settings.py",
        "tests/clientapi/test_streamed.py",
        "tests/community/test_load_media.py",
        "tests/items/test_finding.py",
        "tests/items/test_taking_back.py",
        "tests/live/test_account.py",
        "tests/moderation/test_sessions.py",
        "tests/relations/test_mutes.py",
        "tests/relations/test_requests.py",
        "tests/timeline/test_policy.py",
        "tests/timeline/test_reposts_left_out.py",
        "tests/timeline/test_return.py",
    ),
    "one promise, of every page, address or function that must keep it": (
        "tests/clientapi/test_access.py",
        "tests/items/test_badges.py",
        "tests/items/test_grids.py",
        "tests/items/test_hostile.py",
        "tests/live/test_bounds.py",
        "tests/media/test_bad_files.py",
        "tests/media/test_poisoned.py",
        "tests/moderation/test_paths.py",
        "tests/moving/test_hostile.py",
        "tests/operation/test_words_of_the_admin.py",
        "tests/runtime/test_secrets.py",
        "tests/timeline/test_bounds.py",
        "tests/web/test_odd_queries.py",
        "tests/web/test_refusals.py",
    ),
    "a fault or a load: killed processes, full disks, servers that refuse or are slow, long use": (
        "tests/community/test_load_killed.py",
        "tests/media/test_bucket_answers.py",
        "tests/media/test_ends.py",
        "tests/operation/test_soak.py",
        "tests/operation/test_taking_over.py",
        "tests/seen/test_waiting.py",
        "tests/seen/test_waits.py",
    ),
    "an app that others wrote, from its first call to its last": (
        "tests/clientapi/test_masto.py",
        "tests/clientapi/test_mastodon_py.py",
        "tests/clientapi/test_toot.py",
    ),
    "files that are no modules of a package, or a package of them": (
        "tests/operation/test_deployment.py",
        "tests/operation/test_monitoring.py",
        "tests/operation/test_proxies.py",
        "tests/runtime/test_manage.py",
        "tests/storage/test_migrations.py",
        "tests/storage/test_replica.py",
    ),
}
"""By the reason why they are of no module: files of tests."""
PLACES = {module: test for those in HELD.values() for module, test in those.items()}


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


def of_no_module() -> set[str]:
    """The test files of the packages that are no module's own."""
    own_files = {str(own(path)) for path in sources()}
    folders = sorted({path.parts[0] for path in sources()})
    command = ["git", "ls-files", *(f"tests/{folder}/*.py" for folder in folders)]
    found = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=True)
    names = (name for name in found.stdout.split() if Path(name).name.startswith("test_"))
    return {name for name in names if name not in own_files}


def test_every_module_has_a_test_file_or_a_reason() -> None:
    without = [
        str(path)
        for path in sources()
        if not (settings.BASE_DIR / own(path)).exists()
        and path.stem not in REASONS
        and PAGES not in path.parts
        and str(path) not in PLACES
    ]
    assert without == []


def test_every_test_file_is_of_a_module_or_has_a_reason() -> None:
    listed = [name for names in FLOWS.values() for name in names]
    assert len(listed) == len(set(listed))
    assert of_no_module() == set(listed)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "test"), PLACES.items())
def test_the_list_is_of_now(module: str, test: str) -> None:
    assert (settings.BASE_DIR / module).exists()
    assert (settings.BASE_DIR / test).exists()
    assert not (settings.BASE_DIR / own(Path(module))).exists(), f"{module} has a test file of its own"
