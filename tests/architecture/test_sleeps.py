"""A test waits for a thing. Where it sleeps for a time, the time stands here with its reason."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

SLEEPS = {"sleep", "wait_for_timeout"}
WAITS = {"wait_for", "until"}
IN_TEXT = re.compile(r"\b(?:time\.|asyncio\.|pg_)sleep\(")
"""In a program or a statement that a test writes down."""
POLL_SECONDS = 0.2
"""The longest pause of a loop that looks for a thing again and again."""


def _is_poll(call: ast.Call) -> bool:
    """Whether a sleep is a pause between two looks: short, and of a `while`."""
    length = call.args[0] if call.args else None
    if not isinstance(length, ast.Constant) or not isinstance(length.value, int | float):
        return False
    is_browser = isinstance(call.func, ast.Attribute) and call.func.attr == "wait_for_timeout"
    return length.value / (1000 if is_browser else 1) <= POLL_SECONDS


def _is_for_nothing(call: ast.Call) -> bool:
    """Whether a call waits for `lambda: False`, a sleep in disguise."""
    return any(isinstance(each, ast.Lambda) and ast.unparse(each.body) == "False" for each in call.args)


def sleeps(tree: ast.AST, place: str = "", is_looping: bool = False) -> Iterator[str]:
    """The names of the functions, or of the constants, in which a test sleeps for a time."""
    for node in ast.iter_child_nodes(tree):
        inner, loops = place, is_looping
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner, loops = node.name, False
        elif isinstance(node, ast.Assign) and not place and isinstance(node.targets[0], ast.Name):
            inner = node.targets[0].id
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            loops = isinstance(node, ast.While)
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            is_sleep = name in SLEEPS and not (is_looping and _is_poll(node))
            if is_sleep or (name in WAITS and _is_for_nothing(node)):
                yield inner
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and IN_TEXT.search(node.value):
            yield inner
        yield from sleeps(node, inner, loops)


REASONS = {
    "so long the code itself waits, and that is asked": (
        "tests/browser/test_apps.py: test_a_page_that_has_just_come_into_view_lets_no_app_in",
        "tests/browser/test_apps.py: test_an_app_that_opens_a_window_gets_its_code",
        "tests/browser/test_live.py: test_pages_do_not_all_ask_at_the_same_moment",
        "tests/discover/test_opensearch.py: test_one_search_at_a_time_finds_out_however_long_it_waits",
        "tests/discover/test_refreshing.py: test_tasks",
        "tests/faults/test_overload.py: test_those_who_wait_behind_frozen_threads_are_refused",
        "tests/media/test_bucket.py: test_a_frozen_bucket",
        "tests/runtime/test_shedding.py: let_them_be_late",
        "tests/seen/test_waits.py: test_a_frozen_server_holds_one_thread_a_second",
        "tests/storage/test_replica.py: test_a_write_that_travels_is_no_lag",
        "tests/storage/test_window.py: test_a_slow_reader_deletes_nothing",
        "tests/timeline/test_completions.py: restore",
    ),
    "something must not happen meanwhile, so there is nothing to wait for": (
        "tests/benchmarks/test_streams.py: test_the_bare_writer_hears_what_comes_between_two_waits",
        "tests/browser/test_discover.py: test_new_posts_wait_behind_a_badge",
        "tests/browser/test_first_view.py: measured",
        "tests/browser/test_first_view.py: test_a_shift_is_seen",
        "tests/browser/test_live.py: asks",
        "tests/faults/test_postgresql.py: test_a_page_may_not_take_long_and_an_export_may",
        "tests/faults/test_stream.py: test_postgresql_gone",
        "tests/runtime/test_processes.py: test_an_idle_site_is_small_and_quiet",
        "tests/runtime/test_stream_server.py: test_without_files_for_more_connections_it_goes_on",
    ),
    "a load at a pace, or a death at a moment by chance": (
        "tests/browser/test_live.py: test_news_without_end_put_a_page_off_no_further",
        "tests/faults/test_discover.py: test_nothing_comes_twice_whatever_happens_to_redis",
        "tests/faults/test_live.py: empty_redis",
        "tests/faults/test_live.py: enough",
        "tests/faults/test_races.py: breathe",
        "tests/faults/test_races.py: lose",
        "tests/faults/test_races.py: promote",
        "tests/runtime/test_embedded.py: test_a_keeper_takes_signals_at_any_moment",
        "tests/runtime/test_majors.py: test_a_move_that_is_killed_at_any_moment_is_begun_again",
        "tests/support/killing.py: kill_at_random",
    ),
    "a process, a statement or an answer that only has to last": (
        "tests/architecture/test_migrated.py: makes_it",
        "tests/benchmarks/test_load.py: serve",
        "tests/faults/test_pooler.py: test_a_long_statement_leaves_its_bound_to_no_one",
        "tests/faults/test_pooler.py: test_a_statement_ends_soon_after_its_client_gave_up",
        "tests/runtime/test_check_all.py: WAIT",
        "tests/runtime/test_check_all.py: test_a_run_that_is_broken_off_begins_nothing_more",
        "tests/runtime/test_embedded.py: HOLDER",
        "tests/runtime/test_manage.py: SLOW_PIP",
        "tests/runtime/test_supervisor.py: LAST_WORDS",
        "tests/runtime/test_supervisor.py: LISTENER",
        "tests/runtime/test_supervisor.py: OTHER_SITE",
        "tests/storage/test_replica.py: read",
        "tests/support/opensearch.py: drips",
        "tests/support/opensearch.py: trouble",
    ),
}
"""By the reason why they wait for a time and not for a thing: functions and programs of tests."""


def test_a_test_sleeps_with_a_reason_alone() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "tests/*.py"], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
    )
    found = {
        f"{name}: {place}"
        for name in listed.stdout.split()
        if Path(name).name != Path(__file__).name
        for place in sleeps(ast.parse((settings.BASE_DIR / name).read_text()))
    }
    reasoned = [place for those in REASONS.values() for place in those]
    assert len(reasoned) == len(set(reasoned))
    assert found == set(reasoned)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def test_a():\n    time.sleep(1)", ["test_a"]),
        ("def test_a():\n    def inner():\n        page.wait_for_timeout(100)", ["inner"]),
        ("async def serve():\n    await asyncio.sleep(0)", ["serve"]),
        ("def test_a():\n    while not done():\n        time.sleep(0.02)", []),
        ("def test_a():\n    while not done():\n        page.wait_for_timeout(50)", []),
        ("def test_a():\n    while not done():\n        time.sleep(2)", ["test_a"]),
        ("def test_a():\n    while not done():\n        time.sleep(chance.random())", ["test_a"]),
        ("def test_a():\n    for _ in range(3):\n        time.sleep(0.1)", ["test_a"]),
        ("def test_a():\n    while True:\n        def late():\n            time.sleep(0.1)", ["late"]),
        ("PROGRAM = '''\nimport time\ntime.sleep(600)\n'''", ["PROGRAM"]),
        ("def test_a():\n    fetch('SELECT pg_sleep(2)')", ["test_a"]),
        ("def test_a():\n    wait_for(lambda: False, 0.2)", ["test_a"]),
        ("def test_a():\n    wait_for(lambda: done, 0.2)", []),
        ("def test_a():\n    assert asleep(1)", []),
    ],
)
def test_sleeps_are_found(text: str, expected: list[str]) -> None:
    assert [*sleeps(ast.parse(text))] == expected
