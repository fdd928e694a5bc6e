"""How many bytes does an inbox entry take?

MEMORY USAGE of whole keys, every element sampled, at the caps of the three levels and at caps plus slack. Inboxes of
levels 1 and 2 are meant to stay listpacks, those of level 3 are skiplists.
"""

from django.conf import settings

from benchmarks.community import Community, build_window, entries, materialise_inbox
from benchmarks.measure import Report
from storage.connections import feeds_for_tasks
from storage.window import Entry
from timeline.inbox import cap_of


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    client = feeds_for_tasks()
    report = Report(
        "memory",
        __doc__.splitlines()[0],
        ["level", "entries", "encoding", "bytes a key", "bytes an entry"],
        "one inbox of each length; MEMORY USAGE counts exactly",
    )
    reader = community.readers[max(community.readers)][0]
    materialise_inbox(reader)
    newest = entries(reader)
    for level in sorted(settings.LEVEL_CAPS):
        for more in (0, settings.WINDOW_SLACK):
            key = f"model:{reader}"
            padding = [Entry(newest[0].item_id + more - place, 12_345) for place in range(more)]
            wanted = padding + newest[: cap_of(level)]
            build_window(key, wanted)
            used = client.memory_usage(key, samples=0)
            encoding = client.object("encoding", key).decode()
            report.rows.append([level, len(wanted), encoding, used, round(used / len(wanted), 1)])
    client.unlink(key)
    return report
