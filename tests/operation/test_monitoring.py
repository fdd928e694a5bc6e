import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from runtime import metrics

DOCS = Path(settings.BASE_DIR) / "docs"
PROMETHEUS = Path(settings.BASE_DIR) / "deploy" / "prometheus"
OTHERS = ("up{", "probe_success{", "min(probe_ssl_")
"""Starts of expressions that Prometheus and its blackbox exporter answer."""
NAME = re.compile(r"\bfeedsite_[a-z0-9_]+")
METRICS = {
    name: set(metric._labelnames)
    for metric in {*metrics.registry._collector_to_names}
    for name in metrics.registry._collector_to_names[metric]
}
"""Every valid metric name, with its labels."""


def labels_of(expression: str) -> set[str]:
    grouped = re.findall(r"\b(?:by|ignoring|without) \(([^)]*)\)|\bignoring\(([^)]*)\)", expression)
    named = {label.strip() for pair in grouped for part in pair for label in part.split(",") if label.strip()}
    return named | set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", expression))


def check(expression: str) -> None:
    found = NAME.findall(expression)
    assert set(found) <= METRICS.keys(), expression
    if found:
        having = set.union(*(METRICS[name] for name in found))
        assert labels_of(expression) - {"le", "instance"} <= having, expression
    for opening, closing in ("()", "[]", "{}"):
        assert expression.count(opening) == expression.count(closing), expression


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS / "grafana" / "feedsite.json").read_text())
    return found


def test_every_panel_of_grafana_asks_for_what_there_is() -> None:
    panels = [panel for panel in dashboard()["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in panels}) == len(panels) >= 20
    for panel in panels:
        for target in panel["targets"]:
            assert NAME.search(target["expr"]), panel["title"]
            check(target["expr"])
            shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert shown <= set.union(*(METRICS[name] for name in NAME.findall(target["expr"]))), panel["title"]


def test_every_alert_asks_for_what_there_is() -> None:
    (group,) = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(set(names)) == len(names) >= 10
    for rule in group["rules"]:
        assert NAME.search(rule["expr"]) or rule["expr"].startswith(OTHERS)
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in {"page", "ticket"}
        if not rule["expr"].startswith(OTHERS):
            check(rule["expr"])


@pytest.mark.parametrize("expression", ["feedsite_no_such", 'feedsite_big_vs{no="x"}', "sum by (no) (feedsite_users)"])
def test_what_there_is_not_would_be_found(expression: str) -> None:
    with pytest.raises(AssertionError):
        check(expression)


def test_the_page_names_every_metric() -> None:
    page = (DOCS / "metrics.md").read_text()
    named = {name.removesuffix("_total") for name in NAME.findall(page)}
    having = {next(iter(metric.describe())).name for metric in metrics.registry._collector_to_names}
    assert having <= named


# --- The alerts, run by Prometheus -----------------------------------------------------------------------
SAMPLED = {'feedsite_sampled_seconds{instance="a"}': "0+60x300", 'feedsite_sampled_seconds{instance="b"}': "0x300"}
"""Those of machine b sampled once, long ago."""
FAULTS: dict[str, dict[str, str]] = {
    "FeedsiteDown": {'up{job="feedsite",instance="a"}': "1 1 0x300"},
    "FeedsiteWorkersSilent": {'feedsite_sampled_seconds{instance="a"}': "0 60 120 120x300"},
    "FeedsiteDeliveriesLate": {'feedsite_delivery_oldest_seconds{instance="a"}': "0 0 300x300"},
    "FeedsiteMailLate": {'feedsite_waiting_seconds{work="letters",instance="a"}': "0+60x300"},
    "FeedsiteWorkLate": {'feedsite_waiting_seconds{work="pushes",instance="a"}': "0 0 900x300"},
    "FeedsiteLagHigh": {
        'feedsite_delivery_seconds_bucket{le="10.0"}': "0+60x300",
        'feedsite_delivery_seconds_bucket{le="30.0"}': "0+90x300",
        'feedsite_delivery_seconds_bucket{le="+Inf"}': "0+90x300",
    },
    "FeedsiteDeliveriesParked": {'feedsite_deliveries_parked{instance="a"}': "0 0 1x300"},
    "FeedsiteLineupsBehind": {'feedsite_live_lineup_lag_seconds{instance="b"}': "0 0 90x300"},
    # Somebody waits at every third look only.
    "FeedsiteDatabaseLocked": {'feedsite_lock_seconds{instance="a"}': "0x100 100 0 120 0 140 0 160 0" + " 0 400" * 80},
    "FeedsiteOracleDifference": {'feedsite_oracle_differences_total{kind="missing"}': "0x150 20x150"},
    "FeedsiteReplicaBehind": {'feedsite_replica_up{server="replica",instance="a"}': "1 1 0x300"},
    "FeedsiteStreamFails": {'feedsite_stream_failures_total{task="listener"}': "0+1x300"},
    "FeedsiteQueueLong": {'feedsite_queue_length{queue="celery",instance="a"}': "0 0 20000x300"},
    "FeedsiteErrors": {"feedsite_http_failures_total": "0+2x300", "feedsite_http_seconds_count": "0+100x300"},
    "FeedsiteSheds": {"feedsite_web_shed_total": "0+20x300", "feedsite_http_seconds_count": "0+100x300"},
    "FeedsiteUnreachable": {'probe_success{job="feedsite-https",instance="https://example.org/healthz"}': "1 1 0x300"},
    # A probe asks another name.
    "FeedsiteCertificateEnds": {
        'probe_ssl_earliest_cert_expiry{job="feedsite-https"}': f"{60 * 86400}x300",
        'feedsite_certificate_ends_seconds{site="https://example.org",instance="a"}': f"{13 * 86400}x300",
    },
    "FeedsiteSessionsFull": {'feedsite_postgresql_sessions_ratio{instance="a"}': "0.2 0.2 0.9x300"},
    "FeedsiteRedisFull": {'feedsite_redis_memory_ratio{server="plays",instance="a"}': "0.2 0.2 0.95x300"},
    "FeedsiteFeedsFull": {
        'feedsite_redis_memory_ratio{server="feeds",instance="a"}': "0.2 0.2 1x300",
        'feedsite_redis_evicted_keys{server="feeds",instance="a"}': "0 0 0+60x300",
    },
    "FeedsiteMemoryFull": {'feedsite_memory_available_ratio{instance="b"}': "0.5 0.5 0.03x300"},
    "FeedsiteSlow": {
        # The API is quick.
        'feedsite_http_seconds_bucket{route="/",le="0.5"}': "0+60x300",
        'feedsite_http_seconds_bucket{route="/",le="1.0"}': "0+90x300",
        'feedsite_http_seconds_bucket{route="/",le="+Inf"}': "0+90x300",
        'feedsite_http_seconds_bucket{route="api/v1/timeline/home",le="0.5"}': "0+9000x300",
        'feedsite_http_seconds_bucket{route="api/v1/timeline/home",le="1.0"}': "0+9000x300",
        'feedsite_http_seconds_bucket{route="api/v1/timeline/home",le="+Inf"}': "0+9000x300",
    },
    "FeedsiteRefusals": {
        'feedsite_http_seconds_count{status="429"}': "0+20x300",
        'feedsite_http_seconds_count{status="200"}': "0+100x300",
    },
    "FeedsiteMailFails": {'feedsite_letters_failed{instance="a"}': "0 0 1x300"},
    "FeedsiteBackupOld": {
        'feedsite_backup_made_seconds{instance="a"}': f"{-31 * 3600}x300",
        'feedsite_backup_made_seconds{instance="b"}': "0x300",
    },
    "FeedsiteWindowsMissed": {
        'feedsite_home_misses_total{reason="missing"}': "0+50x300",
        'feedsite_home_pages_total{sources="sql"}': "0+100x300",
    },
    "FeedsiteServerSilent": {'feedsite_breaker_trips_total{server="feeds"}': "0+10x300"},
    "FeedsiteFilterFull": {"feedsite_impressions_fill_ratio": "1.2x300"},
    "FeedsiteImpressionsDropped": {"feedsite_impressions_dropped_total": "0x150 20x150"},
    "FeedsitePlayedDown": {'feedsite_played_up{server="store"}': "1 1 0x300"},
    "FeedsitePlayedNotMerged": {'feedsite_played_backlog_users{state="left"}': "7x300"},
    "FeedsitePlayedMergesFail": {'feedsite_played_merges_total{result="failed"}': "0x150 1x150"},
    "FeedsitePlayedUserFails": {"feedsite_played_failed_users_total": "0x150 1x150"},
    "FeedsitePlayedRefused": {"feedsite_played_refused_total": "0+1x300"},
    "FeedsiteDiskFull": {'feedsite_disk_free_ratio{instance="b"}': "0.05x300"},
}
"""One value a minute. The alert fires at minute 180."""
SOUND = {
    'up{job="feedsite",instance="a"}': "1x300",
    # b sampled last during the fault. a has sampled since.
    'feedsite_delivery_oldest_seconds{instance="b"}': "900x300",
    'feedsite_delivery_oldest_seconds{instance="a"}': "3x300",
    'feedsite_waiting_seconds{work="letters",instance="b"}': "900x300",
    'feedsite_waiting_seconds{work="letters",instance="a"}': "590x300",
    'feedsite_waiting_seconds{work="pushes",instance="a"}': "3x300",
    'feedsite_certificate_ends_seconds{site="https://example.org",instance="a"}': f"{60 * 86400}x300",
    'feedsite_postgresql_sessions_ratio{instance="b"}': "0.99x300",
    'feedsite_postgresql_sessions_ratio{instance="a"}': "0.5x300",
    'feedsite_redis_memory_ratio{server="plays",instance="b"}': "0.99x300",
    'feedsite_redis_memory_ratio{server="plays",instance="a"}': "0.5x300",
    # Full of windows that still serve, as after months without a restart: hardly one is evicted.
    'feedsite_redis_memory_ratio{server="feeds",instance="a"}': "1x300",
    'feedsite_redis_evicted_keys{server="feeds",instance="a"}': "0+1x300",
    'feedsite_memory_available_ratio{instance="a"}': "0.3x300",
    'feedsite_lock_seconds{instance="b"}': "400x300",
    'feedsite_lock_seconds{instance="a"}': "20x300",
    'feedsite_deliveries_parked{instance="b"}': "4x300",
    'feedsite_deliveries_parked{instance="a"}': "0x300",
    'feedsite_queue_length{queue="celery",instance="b"}': "90000x300",
    'feedsite_queue_length{queue="celery",instance="a"}': "5x300",
    'feedsite_replica_up{server="replica",instance="b"}': "0x300",
    'feedsite_replica_up{server="replica",instance="a"}': "1x300",
    'feedsite_replica_lag_seconds{instance="a"}': "0.2x300",
    'feedsite_live_lineup_lag_seconds{instance="a"}': "2x300",
    # The sweeper delivers an approved item on its first turn.
    'feedsite_delivery_seconds_bucket{le="10.0"}': "0+90x300",
    'feedsite_delivery_seconds_bucket{le="+Inf"}': "0+90x300",
    "feedsite_http_failures_total": "0x300",
    "feedsite_web_shed_total": "0x300",
    "feedsite_http_seconds_count": "0+100x300",
    'feedsite_home_misses_total{reason="dormant"}': "0+90x300",
    'feedsite_home_pages_total{sources="inbox"}': "0+100x300",
    'feedsite_played_up{server="plays"}': "1x300",
    'feedsite_played_merges_total{result="done"}': "0+50x300",
    'feedsite_disk_free_ratio{instance="a"}': "0.5x300",
    'probe_success{job="feedsite-https",instance="https://example.org/healthz"}': "1x300",
    'probe_ssl_earliest_cert_expiry{job="feedsite-https"}': f"{60 * 86400}x300",
    'feedsite_http_seconds_count{status="429"}': "0+2x300",
    'feedsite_letters_failed{instance="a"}': "0x300",
    'feedsite_backup_made_seconds{instance="b"}': f"{-90 * 3600}x300",
    'feedsite_backup_made_seconds{instance="a"}': f"{-3 * 3600}x300",
    'feedsite_backup_made_seconds{instance="c"}': "0x300",
}


def alerts() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def judged(name: str, series: dict[str, str], *, fires: bool) -> dict[str, Any]:
    """Whether the alert (or any) fires at minute 180."""
    chosen = f'alertname="{name}",' if name else ""
    expected = [{"labels": "{}", "value": 1}] if fires else []
    return {
        "name": name or "sound",
        "interval": "1m",
        "input_series": [{"series": one, "values": values} for one, values in (SAMPLED | series).items()],
        "promql_expr_test": [
            {
                "expr": f'count(count by (alertname) (ALERTS{{{chosen}alertstate="firing"}}))',
                "eval_time": "180m",
                "exp_samples": expected,
            }
        ],
    }


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's package prometheus")
def test_prometheus_takes_the_configuration() -> None:
    path = PROMETHEUS / "prometheus.yml"
    done = subprocess.run(["promtool", "check", "config", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    jobs = {job["job_name"] for job in yaml.safe_load(path.read_text())["scrape_configs"]}
    asked = {job for rule in alerts() for job in re.findall(r'job="([^"]+)"', rule["expr"])}
    assert asked == jobs, "an alert about a job that nothing scrapes would never fire"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's package prometheus")
def test_no_target_at_all_is_a_site_that_is_down(tmp_path: Path) -> None:
    test = judged("FeedsiteDown", {}, fires=True)
    rules = str(PROMETHEUS / "alerts.yml")
    (tmp_path / "tests.yml").write_text(yaml.safe_dump({"rule_files": [rules], "tests": [test]}))
    done = subprocess.run(["promtool", "test", "rules", str(tmp_path / "tests.yml")], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's package prometheus")
def test_every_alert_fires_at_its_fault_and_at_nothing_else(tmp_path: Path) -> None:
    assert FAULTS.keys() == {rule["alert"] for rule in alerts()}
    tests = [judged(name, series, fires=True) for name, series in FAULTS.items()]
    tests.append(judged("", SOUND, fires=False))
    rules = PROMETHEUS / "alerts.yml"
    (tmp_path / "tests.yml").write_text(yaml.safe_dump({"rule_files": [str(rules)], "tests": tests}))
    done = subprocess.run(
        ["promtool", "test", "rules", str(tmp_path / "tests.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    checked = subprocess.run(["promtool", "check", "rules", str(rules)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.long
def test_what_alerts_count_is_there_from_the_start() -> None:
    """A series that starts at 20 has an `increase` of 0."""
    code = "import django; django.setup(); from runtime import metrics; print(metrics.exposition().decode())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
    )
    shown = {line.rpartition(" ")[0] for line in done.stdout.splitlines() if not line.startswith("#")}
    for rule in alerts():
        for name, labels in re.findall(r"increase\((feedsite_\w+)(?:{([^}]*)})?", rule["expr"]):
            having = [one for one in shown if one.partition("{")[0] == name and labels in one]
            assert having, f"{rule['alert']}: {name}{{{labels}}}"


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_the_index_of_the_runbook_leads_where_the_alert_does(rule: dict[str, Any]) -> None:
    """tests/architecture/test_docs.py checks the links."""
    index = (DOCS / "runbook.md").read_text().partition("\n## ")[0]
    name = "FeedsitePlayed…" if rule["alert"].startswith("FeedsitePlayed") else rule["alert"]
    rows = [line for line in index.splitlines() if f"`{name}`" in line]
    to = rule["annotations"]["runbook"].removeprefix("docs/").removeprefix("runbook.md")
    assert any(f"]({to})" in row for row in rows), rows
