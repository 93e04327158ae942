"""The page in a real browser: what the slider shows, what can be reached, what must not happen."""

from __future__ import annotations

import csv
from contextlib import contextmanager

import pytest
from report_cases import FORMULA, HOSTILE

from toprank.report.figures import build_figures
from toprank.report.text import page_texts

pytestmark = pytest.mark.flaky(reruns=1)  # real processes and clocks on a busy machine
KEYS = ("hits", "precision", "recall", "false_alarms", "money")
READY = "document.documentElement.dataset.plots"
# Unpacking and drawing take most of a test's time; those that need no plots do without.
PLAIN = {"ready": "failed", "before": "delete window.DecompressionStream"}
NO_SIDEWAYS = "document.documentElement.scrollWidth <= window.innerWidth"


class Watch:
    """Whatever a page says on the console, fails at, or asks for."""

    def __init__(self, page):
        self.said, self.requests = [], []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))


@contextmanager
def opened(browser, path, *, width=1200, height=900, ready="ready", before=None, **options):
    """The page in a fresh context, drawn, with a watch on it."""
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    context.set_default_timeout(60_000)  # machines may be busy
    page = context.new_page()
    page.watch = Watch(page)
    if before:
        page.add_init_script(before)
    page.goto(path.as_uri())
    if ready:
        page.wait_for_function(f"{READY} === '{ready}'")
    try:
        yield page
    finally:
        context.close()


@pytest.fixture(scope="module")
def texts(shown_report):
    return page_texts(shown_report)


@pytest.fixture(scope="module")
def page(browser, page_file):
    """One page that the tests of the list and of the alerts share; each sets what it needs."""
    with opened(browser, page_file, accept_downloads=True) as page:
        yield page
        assert page.watch.said == []
        assert [url for url in page.watch.requests if not url.startswith("blob:")] == [
            page_file.as_uri()
        ]


def figures_shown(page):
    """The live figures and their ranges."""
    found = {key: page.locator(f"#live-{key}").inner_text() for key in KEYS}
    ranges = {f"{key}_range": page.locator(f"#live-{key}-range").inner_text() for key in KEYS}
    return found | ranges | {"money_note": page.locator("#live-money-note").inner_text()}


def check_place(page, texts, place):
    """The page shows exactly what Python wrote for one list length."""
    expected = texts["lists"][place]
    shown = figures_shown(page)
    assert shown == {key: expected[key] for key in shown}
    assert page.locator("#slider").get_attribute("aria-valuetext") == expected["spoken"]


def test_the_slider_shows_what_python_computed(page, texts, shown_report):
    lengths = shown_report["lists"]["length"]
    slider = page.locator("#slider")
    check_place(page, texts, texts["start"])
    for place in (0, 1, 49, 120, 299, len(lengths) - 2, len(lengths) - 1):
        slider.fill(str(place))
        check_place(page, texts, place)
        assert page.locator("#rows").input_value() == str(lengths[place])
        marks = page.evaluate(
            "document.getElementById('lists').data.slice(-2).map(t => [t.x[0], t.y[0]])"
        )
        lists = shown_report["lists"]
        assert marks == [
            [lengths[place], lists["precision"]["value"][place]],
            [lengths[place], lists["recall"]["value"][place]],
        ]


def test_the_slider_moves_by_keyboard(page, texts, shown_report):
    slider = page.get_by_role("slider", name="List length")
    slider.focus()
    page.keyboard.press("Home")
    check_place(page, texts, 0)
    for key in ("ArrowRight", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    check_place(page, texts, 3)
    page.keyboard.press("ArrowLeft")
    check_place(page, texts, 2)
    page.keyboard.press("End")
    check_place(page, texts, len(shown_report["lists"]["length"]) - 1)


def test_a_typed_length_finds_the_nearest_computed_one(page, texts, shown_report):
    lengths = shown_report["lists"]["length"]
    box = page.get_by_role("spinbutton", name="Rows to check")
    for typed, length in (("173", 173), ("1021", 1000), ("99999", 3000), ("-5", 1)):
        box.fill(typed)
        check_place(page, texts, lengths.index(length))
        assert (
            page.locator("#spoken").inner_text() == texts["lists"][lengths.index(length)]["spoken"]
        )
        box.press("Enter")
        assert box.input_value() == str(length)
    box.fill("")  # nothing to look up: the figures stay
    check_place(page, texts, 0)


def test_ready_made_lengths(page, texts):
    for card in texts["cards"]:
        button = page.get_by_role("button", name=f"Top {card['length']}", exact=True)
        button.click()
        check_place(page, texts, card["position"])
        assert button.get_attribute("aria-pressed") == "true"
    assert page.locator("[aria-pressed=true]").count() == 1


def test_the_first_screen_answers(page, texts, shown_report):
    page.evaluate("window.scrollTo(0, 0)")
    assert page.locator("#headline").text_content() == texts["headline"]
    for number, length in enumerate(shown_report["lengths"]):
        card = page.locator(".card").nth(number).inner_text()
        place = shown_report["lists"]["length"].index(length)
        hits = shown_report["lists"]["hits"]["value"][place]
        assert f"{hits:.0f}" in card
        assert f"of {length} right" in card
        assert texts["lists"][place]["precision_range"] in card
    bottom = page.locator(".bigger").bounding_box()
    assert bottom["y"] + 100 < 900  # what a bigger list would catch starts on the first screen
    assert page.get_by_role("table", name="What a list longer than").count() == 1


def test_search_narrows_the_alerts(page, texts):
    search = page.get_by_role("searchbox", name="Search the alerts")
    rows = page.locator("#alert-rows tr")
    assert rows.count() == 100
    page.get_by_role("button", name="Show more").click()
    assert rows.count() == 200
    search.fill("RIGHT  tx-01")  # every word, in any order and case
    haystacks = [" ".join(map(str, row)).lower() for row in texts["alerts"]["rows"]]
    matching = [text for text in haystacks if "right" in text and "tx-01" in text]
    assert 1 < rows.count() == len(matching) < 100
    assert page.locator("#found").inner_text() == f"{len(matching)} of 250 alerts match"
    last = texts["alerts"]["rows"][249]
    search.fill(last[1])
    assert rows.count() == 1
    assert rows.first.locator("th").inner_text() == last[0] == "250"
    search.fill("no such thing")
    assert rows.count() == 0
    search.fill("")
    assert page.locator("#found").inner_text() == "250 alerts"


def test_the_alerts_show_cells_as_text(page, texts):
    page.get_by_role("searchbox", name="Search the alerts").fill("")
    cells = page.locator("#alert-rows tr").nth(1).locator("td")
    assert cells.nth(0).text_content() == HOSTILE
    assert cells.nth(3).inner_text() == texts["alerts"]["rows"][1][4]
    assert page.locator("#alert-rows li").nth(1).text_content() == HOSTILE
    assert page.locator("#alert-rows img, #alert-rows script").count() == 0


def download(page, path):
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download as CSV").click()
    assert waiting.value.suggested_filename == "alerts.csv"
    waiting.value.save_as(path)
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_download_gives_the_matching_alerts_and_no_formula(page, shown_report, tmp_path):
    search = page.get_by_role("searchbox", name="Search the alerts")
    search.fill("")
    whole = download(page, tmp_path / "all.csv")
    names = shown_report["alerts"]["columns"]
    assert whole[0] == names
    assert len(whole) == 251
    assert whole[3][1] == "'" + FORMULA
    assert whole[2][1] == HOSTILE
    scores = [float(row[names.index("score")]) for row in whole[1:]]
    assert scores == [row[names.index("score")] for row in shown_report["alerts"]["rows"]]
    search.fill("false alarm")
    some = download(page, tmp_path / "some.csv")
    wrong = [row for row in shown_report["alerts"]["rows"] if row[2] == "false alarm"]
    assert [row[0] for row in some[1:]] == [str(row[0]) for row in wrong]
    search.fill("")


def test_every_plot_is_drawn_from_the_dict(page, shown_report):
    figures = build_figures(shown_report)
    assert page.locator("[data-figure]").count() == len(figures) == 10
    for name, figure in figures.items():
        assert page.locator(f"#{name} svg.main-svg").count() > 0
        drawn = page.evaluate(f"document.getElementById('{name}').data.map(t => t.y.length)")
        assert drawn == [len(trace["y"]) for trace in figure["traces"]]
        names = page.evaluate(f"document.getElementById('{name}').data.map(t => t.name || '')")
        assert names == [trace.get("name", "") for trace in figure["traces"]]
    legend = page.locator("#roc .legendtext").all_text_contents()
    assert "noisy <b>model</b>" in legend
    assert page.locator("#main a[href^=http], svg a").count() == 0


def test_tables_stand_in_for_the_plots(page, shown_report):
    figure = build_figures(shown_report)["recall-precision"]
    place = page.locator("figure", has=page.locator("#recall-precision"))
    place.locator("summary").click()
    assert place.locator("tbody tr").count() == len(figure["rows"])
    first = place.locator("tbody tr").first.locator("th, td").all_inner_texts()
    assert first == figure["rows"][0]


def test_hostile_names_did_nothing(page):
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.title").startswith("Payments </script>")


def test_nothing_can_leave_or_be_added(browser, page_file):
    with opened(browser, page_file, **PLAIN) as page:
        attempts = """async () => {
          const script = document.createElement("script");
          script.textContent = "window.hacked = 1";
          document.body.append(script);
          const image = new Image();
          const refused = new Promise(done => {
            image.onerror = () => done("refused");
            image.onload = () => done("loaded");
          });
          image.src = "http://127.0.0.1:9/x.png";
          const fetched = await fetch("http://127.0.0.1:9/").then(() => "sent", () => "refused");
          return [window.hacked ?? null, await refused, fetched];
        }"""
        page.evaluate(
            "() => { window.refused = []; document.addEventListener('securitypolicyviolation',"
            " event => window.refused.push(event.effectiveDirective)); }"
        )
        assert page.evaluate(attempts) == [None, "refused", "refused"]
        refused = page.evaluate("window.refused")
        assert {"script-src-elem", "img-src", "connect-src"} <= set(refused)


def test_the_whole_page_by_keyboard_alone(browser, page_file, texts, tmp_path):
    with opened(browser, page_file, accept_downloads=True, **PLAIN) as page:

        def focused():
            return page.evaluate(
                "document.activeElement.id || document.activeElement.textContent.trim()"
            )

        def tab_to(wanted, most=60):
            for _ in range(most):
                page.keyboard.press("Tab")
                if focused() == wanted:
                    visible = "getComputedStyle(document.activeElement).outlineStyle"
                    assert page.evaluate(visible) != "none"
                    return
            raise AssertionError(f"{wanted} cannot be reached")

        page.keyboard.press("Tab")
        assert focused() == "Skip to the report"
        assert page.evaluate("document.activeElement.getBoundingClientRect().top") >= 0
        page.keyboard.press("Enter")
        assert focused() == "main"
        tab_to("rows")
        page.keyboard.press("Control+A")
        page.keyboard.type("75")
        check_place(page, texts, 74)
        tab_to("slider")
        page.keyboard.press("ArrowRight")
        check_place(page, texts, 75)
        tab_to("search")
        page.keyboard.type(texts["alerts"]["rows"][30][1])
        assert page.locator("#alert-rows tr").count() == 1
        tab_to("download")
        with page.expect_download():
            page.keyboard.press("Enter")
        page.keyboard.press("Shift+Tab")
        assert focused() == "search"


def check_narrow(page, width):
    """Nothing sticks out of a narrow screen; what can be pressed is large enough for a finger."""
    page.wait_for_function(
        "width => [...document.querySelectorAll('.main-svg')].every(s => s.clientWidth <= width)",
        arg=width,
    )
    assert page.evaluate(NO_SIDEWAYS)
    row = page.locator("#alert-rows tr").first
    assert row.evaluate("r => getComputedStyle(r).display") == "block"
    assert row.bounding_box()["width"] <= width
    small = page.evaluate(
        "[...document.querySelectorAll('main button, main input')].filter(b => b.offsetParent"
        " && b.getBoundingClientRect().height < 24).map(b => b.id)"
    )
    assert small == []


def test_a_phone_needs_no_sideways_scrolling(browser, page_file):
    with opened(browser, page_file, width=375, height=740, has_touch=True, is_mobile=True) as page:
        assert page.locator(".main-svg").count() > 0
        check_narrow(page, 375)
        assert page.locator("#alert-rows tr").count() == 20
        page.locator("#slider").fill("10")
        assert page.locator("#rows").input_value() == "11"
        page.set_viewport_size({"width": 320, "height": 640})
        check_narrow(page, 320)


def test_light_and_dark_follow_the_system_and_the_button(browser, page_file):
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('#roc .xtick text')).fill"
    with opened(browser, page_file, color_scheme="dark") as page:
        dark = page.evaluate(ground), page.evaluate(ink)
        page.get_by_role("button", name="Switch between light and dark").click()
        page.wait_for_function(f"{ink} !== '{dark[1]}'")
        light = page.evaluate(ground), page.evaluate(ink)
        assert dark[0] != light[0]
        page.emulate_media(color_scheme="light")
        assert (page.evaluate(ground), page.evaluate(ink)) == light
        assert page.watch.said == []


def test_an_old_browser_still_has_the_figures(browser, page_file, texts):
    with opened(browser, page_file, **PLAIN) as page:
        assert "table below" in page.locator("#roc").inner_text()
        page.locator("#slider").fill("9")
        check_place(page, texts, 9)
        assert page.locator("#alert-rows tr").count() == 100


def test_without_scripts_the_answer_is_there(browser, page_file, texts):
    with opened(browser, page_file, ready=None, java_script_enabled=False) as page:
        assert page.locator(".card").count() == 3
        assert page.locator("#live-precision").inner_text() == texts["cards"][1]["precision"]
        assert page.get_by_text("The table needs JavaScript.").is_visible()
