"""The files for Grafana and Prometheus ask for what there is."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from feedsite import metrics

DOCS = Path(settings.BASE_DIR) / "docs"
NAME = re.compile(r"\bfeedsite_[a-z0-9_]+")
METRICS = {
    name: set(metric._labelnames)
    for metric in {*metrics.registry._collector_to_names}
    for name in metrics.registry._collector_to_names[metric]
}
"""Every name that may be asked for, and its labels."""


def labels_of(expression: str) -> set[str]:
    grouped = re.findall(r"\b(?:by|ignoring|without) \(([^)]*)\)|\bignoring\(([^)]*)\)", expression)
    named = {label.strip() for pair in grouped for part in pair for label in part.split(",") if label.strip()}
    return named | set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", expression))


def check(expression: str) -> None:
    found = NAME.findall(expression)
    assert set(found) <= METRICS.keys(), expression
    if found:
        having = set.union(*(METRICS[name] for name in found))
        assert labels_of(expression) - {"le"} <= having, expression
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
    (group,) = yaml.safe_load((DOCS / "prometheus" / "alerts.yml").read_text())["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(set(names)) == len(names) >= 10
    for rule in group["rules"]:
        assert NAME.search(rule["expr"]) or rule["expr"].startswith("up{")
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in {"page", "ticket"}
        if not rule["expr"].startswith("up{"):
            check(rule["expr"])


@pytest.mark.parametrize("expression", ["feedsite_no_such", 'feedsite_big_vs{no="x"}', "sum by (no) (feedsite_users)"])
def test_what_there_is_not_would_be_found(expression: str) -> None:
    with pytest.raises(AssertionError):
        check(expression)


def test_operations_names_every_metric() -> None:
    page = (DOCS / "operations.md").read_text()
    named = {name.removesuffix("_total") for name in NAME.findall(page)}
    having = {next(iter(metric.describe())).name for metric in metrics.registry._collector_to_names}
    assert having <= named
