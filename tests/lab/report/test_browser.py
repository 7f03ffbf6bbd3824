"""The report in a browser without a network: what is drawn, what controls do, at both widths and in both themes."""

import json
import shutil

import pytest

from lab.report.fake_fits import change, kept_at, write_fits
from xsoftmax.lab.report.compare import compare
from xsoftmax.lab.report.page.document import page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("Chromium is not installed: apt-get install chromium", allow_module_level=True)

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")

ODD = "<script>alert(1)</script><b>$x$ %{y}"
WIDTHS = {"phone": (390, 844), "desktop": (1280, 900)}
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
DARK, LIGHT = "rgb(20, 23, 26)", "rgb(255, 255, 255)"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of two data sets; names of a method and of classes are HTML."""
    folder = tmp_path_factory.mktemp("report")
    fits = write_fits(
        folder,
        ("icd10", "bibtex"),
        methods=("softmax", "one-vs-each", "u-max"),
        seeds=(0, 1),
        diverged=(("icd10", "u-max", 1),),
    )
    for fit in fits:
        change(fit, kept=kept_at(14.0))
        if "one-vs-each" in str(fit):
            change(fit, method=ODD)
        bins = {"confidence": [0.2, 0.6, 0.9], "accuracy": [0.25, 0.5, 0.95], "n": [5, 5, 5]}
        pairs = [{"true": ODD, "predicted": "a-very-long-name-" * 9, "n": 3, "of": 9}]
        more = {"reliability": {"test": bins}, "confusions": {"test": {"n_wrong": 3, "n_seen": 3, "pairs": pairs}}}
        metrics = json.loads((fit / "metrics.json").read_text()) | more
        metrics["test"]["expected_calibration_error"] = 0.07
        (fit / "metrics.json").write_text(json.dumps(metrics))
    compare(fits, folder / "results")
    (folder / "config.yaml").write_text("experiment: browser\n")
    path = folder / "report.html"
    path.write_text(page(folder / "results", folder / "config.yaml"))
    return path.as_uri()


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module", params=WIDTHS)
def opened(request, browser, report):
    """The report at one width, with what it has asked for and what it has said since."""
    width, height = WIDTHS[request.param]
    tab = browser.new_page(viewport={"width": width, "height": height})
    asked, said = [], []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    tab.goto(report)
    yield tab, asked, said
    tab.close()


@pytest.fixture
def tab(opened, report):
    """The report as it is at first; at the end nothing has been asked for, nothing complained of, nothing alerted."""
    tab, asked, said = opened
    tab.emulate_media(color_scheme="light")
    tab.get_by_label("Colours").select_option("")
    for name, value in (("Measure", "test_log_likelihood"), ("against", "seconds")):
        chart(tab).get_by_label(name).select_option(value)
    chart(tab).get_by_role("button", name="All", exact=True).click()
    yield tab
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [report]
    assert not said
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def chart(tab, kind="curves"):
    """The chart of the second data set in the page's order, icd10."""
    return tab.locator(f'[data-chart="{kind}"]').nth(1)


def layout(tab, path, kind="curves"):
    return chart(tab, kind).locator(".plot").evaluate(f"place => place.layout.{path}")


def n_lines(tab):
    said = "place => place.data.filter(trace => trace.mode === 'lines+markers').length"
    return chart(tab).locator(".plot").evaluate(said)


@pytest.mark.long_cases
def test_controls_change_what_is_drawn(tab):
    controls = chart(tab)
    assert layout(tab, "xaxis.title.text") == "training time (s)"
    assert layout(tab, "yaxis.type") == "log"
    controls.get_by_label("against").select_option("epoch")
    assert layout(tab, "xaxis.title.text") == "epochs"
    controls.get_by_label("Measure").select_option("test_accuracy")
    assert layout(tab, "yaxis.title.text") == "test accuracy"
    assert layout(tab, "yaxis.type") == "linear"
    controls.get_by_label("logarithmic across").check()
    assert layout(tab, "xaxis.type") == "log"
    controls.get_by_label("against").select_option("step")
    assert layout(tab, "xaxis.title.text").startswith("steps")

    assert n_lines(tab) == 4  # three methods, one with a seed that diverged
    controls.get_by_label(ODD).uncheck()
    assert n_lines(tab) == 3
    controls.get_by_role("button", name="None").click()
    assert n_lines(tab) == 0
    controls.get_by_role("button", name="All", exact=True).click()
    assert n_lines(tab) == 4


@pytest.mark.long_cases
def test_zoom_by_buttons_and_by_mouse(tab):
    whole = layout(tab, "xaxis.range")
    controls = chart(tab)
    controls.get_by_role("button", name="zoom in").click()
    near = layout(tab, "xaxis.range")
    assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) / 2)
    controls.get_by_role("button", name="move left").click()
    assert layout(tab, "xaxis.range")[0] < near[0]
    controls.get_by_role("button", name="Show all").click()
    assert layout(tab, "xaxis.range") == pytest.approx(whole)

    place = controls.locator(".plot")
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    across, middle = [box["x"] + part * box["width"] for part in (0.4, 0.7)], box["y"] + box["height"] / 2
    tab.mouse.move(across[0], middle)
    tab.mouse.down()
    tab.mouse.move(across[1], middle + 5, steps=5)
    tab.mouse.up()
    dragged = layout(tab, "xaxis.range")
    assert whole[0] < dragged[0] < dragged[1] < whole[1]
    tab.mouse.dblclick(across[0], middle)
    tab.wait_for_function(
        "([place, low]) => Math.abs(place.layout.xaxis.range[0] - low) < 1e-9", arg=[place.element_handle(), whole[0]]
    )


def test_values_by_pointing_by_keys_and_as_a_table(tab):
    controls = chart(tab)
    place, readout = controls.locator(".plot"), controls.locator(".readout")
    place.focus()
    tab.keyboard.press("ArrowRight")
    first = readout.inner_text()
    tab.keyboard.press("ArrowRight")
    assert readout.inner_text() != first
    assert first.startswith("softmax, test log-likelihood (nats): −")
    assert ", 2 seeds: −" in first
    tab.keyboard.press("ArrowDown")
    assert readout.inner_text().startswith(ODD)
    label = sync_api.expect(place.locator(".hoverlayer"))
    label.to_contain_text(ODD)  # as text: nothing of it is read as HTML

    controls.get_by_role("checkbox", name="softmax", exact=True).uncheck()
    place.locator(".scatterlayer .point").nth(4).hover(force=True)
    label.to_contain_text("training time (s): ")

    controls.locator("summary").click()
    rows = controls.locator("table.values tbody tr")
    assert rows.nth(0).locator("td").nth(0).inner_text() == ODD
    assert rows.count() == 2 * 11 + rows.get_by_text("u-max (seed 1, diverged)").count() > 2 * 11


def test_the_theme_follows_the_system_and_the_switch(tab):
    def colors():
        return {layout(tab, "paper_bgcolor", kind) for kind in ("curves", "calibration")}

    assert colors() == {LIGHT}
    tab.emulate_media(color_scheme="dark")
    place = chart(tab).locator(".plot").element_handle()
    tab.wait_for_function("([place, dark]) => place.layout.paper_bgcolor === dark", arg=[place, DARK])
    assert colors() == {DARK}
    tab.get_by_label("Colours").select_option("light")
    assert colors() == {LIGHT}
    tab.get_by_label("Colours").select_option("")
    assert colors() == {DARK}


def test_everything_has_a_name_and_takes_the_keyboard(tab):
    unnamed = """[...document.querySelectorAll("button, select, input, [role=application], [role=region]")]
      .filter(each => !each.ariaLabel && !(each.tagName === "BUTTON" && each.textContent.trim()))
      .filter(each => !each.labels?.[0]?.textContent.trim())
      .map(each => each.outerHTML)"""
    assert tab.evaluate(unnamed) == []
    tab.locator("h1").click()
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "theme"
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert tab.get_by_role("cell", name=ODD).count() > 0
    tab.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")  # none is too wide
