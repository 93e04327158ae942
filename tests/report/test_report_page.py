"""The page as text: safe, whole, small, and with nothing on it that is not in the dict."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from report_cases import HOSTILE, hostile_report

from toprank import report
from toprank.report.figures import build_figures
from toprank.report.text import (
    amount,
    between,
    count,
    decimal,
    money,
    page_texts,
    percent,
    signed,
)
from toprank.tables import TableError


@pytest.fixture(scope="module")
def full():
    return hostile_report()


@pytest.fixture(scope="module")
def page(full):
    return report.render(full)


class Outline(HTMLParser):
    """Elements, their attributes and texts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.ids, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if dict(attrs).get("id"):
            self.ids.append(dict(attrs)["id"])
        if tag not in {"meta", "link", "input", "img", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes nothing"


def test_the_markup_is_well_formed_and_ids_are_unique(page):
    outline = Outline(page)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    known = set(outline.ids)
    for _, attributes in outline.elements:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            for target in (attributes.get(name) or "").split():
                assert target in known, f"{name} names {target}, which is not there"
        if (attributes.get("href") or "").startswith("#"):
            assert attributes["href"][1:] in known


def test_landmarks_captions_and_labels(page):
    outline = Outline(page)
    tags = [tag for tag, _ in outline.elements]
    for tag in ("header", "nav", "main", "footer", "h1"):
        assert tags.count(tag) == 1
    assert tags.count("table") == tags.count("caption") > 8
    plots = [attributes for _, attributes in outline.elements if "data-figure" in attributes]
    assert len(plots) >= 8
    assert all(len(plot["aria-label"]) > 30 and plot["role"] == "img" for plot in plots)
    labelled = {attributes["for"] for tag, attributes in outline.elements if tag == "label"}
    inputs = {attributes["id"] for tag, attributes in outline.elements if tag == "input"}
    assert inputs == labelled


def test_hostile_names_stay_text(full, page):
    outline = Outline(page)
    assert [tag for tag, _ in outline.elements].count("script") == 3
    assert "img" not in [tag for tag, _ in outline.elements]
    assert not any(
        name.startswith("on") for _, attributes in outline.elements for name in attributes
    )
    assert html.escape(HOSTILE, quote=False)[:40] in page
    assert "\u2028" not in page.split('id="data">')[1].split("</script>")[0]


def test_the_data_comes_back_as_it_went_in(full, page):
    text = page.split('id="data">')[1].split("</script>")[0]
    data = json.loads(text)
    assert data["lists"] == page_texts(full)["lists"]
    assert data["alerts"]["rows"][1][1] == HOSTILE
    assert data["figures"]["roc"]["traces"] == build_figures(full)["roc"]["traces"]


def test_nothing_outside_is_named_and_the_policy_is_strict(page):
    for _, attributes in Outline(page).elements:
        assert attributes.get("href", "#").startswith(("#", "data:,"))
        assert not {"src", "srcset", "action", "formaction", "data", "poster"} & set(attributes)
    assert "@import" not in page.split("</style>")[0]
    assert "url(" not in page.split("</style>")[0]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    policy = html.unescape(policy)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "connect" not in policy
    scripts = re.search(r"script-src ([^;]*);", policy)[1]
    assert "unsafe" not in scripts
    assert "*" not in policy


def test_the_page_is_small_and_does_not_change_with_the_run(full, page):
    assert report.render(json.loads(json.dumps(full))) == page
    assert len(page.encode()) < 3_500_000


def test_the_slider_texts_are_the_figures_of_the_dict(full):
    texts, lists = page_texts(full)["lists"], full["lists"]
    for place in range(0, len(texts), 37):
        column = {name: lists[name] for name in ("hits", "precision", "recall", "false_alarms")}
        shown = texts[place]
        assert shown["precision"] == percent(column["precision"]["value"][place])
        assert shown["recall"] == percent(column["recall"]["value"][place])
        assert shown["hits"] == count(column["hits"]["value"][place])
        assert shown["false_alarms"] == count(column["false_alarms"]["value"][place])
        low, high = (percent(column["precision"][key][place]) for key in ("low", "high"))
        assert shown["precision_range"] == (low if low == high else f"{low} to {high}")
        assert shown["money"] == money(lists["money"]["net"]["value"][place], "$")
        assert shown["precision"] in shown["spoken"]


def test_every_shown_share_rounds_to_the_truth():
    for share in np.linspace(0, 1, 1001):
        text = percent(share)
        number = float(text.strip("<>%"))
        assert abs(number - 100 * share) <= 0.5
        assert (text == "0%") == (share == 0)
        assert (text == "100%") == (share == 1)


@pytest.mark.parametrize("bad", ["missing/page.html", "."])
def test_a_page_that_cannot_be_written_says_so(full, tmp_path, bad):
    with pytest.raises(TableError):
        report.write_page(full, tmp_path / bad)
    assert list(tmp_path.iterdir()) == []


def test_a_page_is_written_whole(full, page, tmp_path):
    report.write_page(full, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_the_smallest_report_has_a_page():
    text = report.render(report.evaluate([0, 1], [0.0, 1.0], n_resamples=5))
    assert Outline(text).open == []
    for section in ("models", "over-time", "drivers"):
        assert f'id="{section}"' not in text


def luminance(colour):
    """Relative luminance of a hexadecimal colour (WCAG 2)."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def themes(page):
    style = page.split("<style>")[1].split("</style>")[0]
    for block in re.findall(r":root[^{]*\{([^}]*)\}", style):
        colours = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", block))
        if "ink" in colours:
            yield colours


def test_colours_can_be_read_in_both_themes(page):
    found = list(themes(page))
    assert len(found) == 3
    # the dark theme is written twice: for the system and for the button
    assert found[1] == found[2]

    def contrast(one, other):
        low, high = sorted((luminance(one), luminance(other)))
        return (high + 0.05) / (low + 0.05)

    for colours in found:
        for text in ("ink", "soft", "muted", "accent"):
            for ground in ("page", "surface", "raised"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        assert contrast(colours["accent-ink"], colours["accent"]) >= 4.5
        assert contrast(colours["right"], colours["right-soft"]) >= 4.5
        assert contrast(colours["wrong"], colours["wrong-soft"]) >= 4.5
        for series in range(1, 7):
            assert contrast(colours[f"series-{series}"], colours["surface"]) >= 3.0


def test_numbers_are_written_for_reading():
    shares = (0, 0.00004, 0.0123, 0.345, 0.9996, 1)
    written = ["0%", "<0.01%", "1.2%", "34%", ">99.9%", "100%"]
    assert [percent(share) for share in shares] == written
    assert (count(12345.0), count(2.5)) == ("12,345", "2.5")
    assert (amount(0.123456), amount(1234567.8), amount(0.0)) == ("0.1235", "1,234,568", "0")
    assert (decimal(0.98765), decimal(None), decimal(1234.0)) == ("0.988", "n/a", "1,234")
    assert (signed(0.0123), signed(-0.2)) == ("+0.012", "-0.200")
    assert (money(1234567.8, "$"), money(-12.5)) == ("$1,234,568", "-12.50")
    assert between(0.1, 0.25, percent) == "10% to 25%"
