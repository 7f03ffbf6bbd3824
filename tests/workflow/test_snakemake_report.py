"""What `snakemake --report` holds, looked at in a browser without a network."""

import shutil
import zipfile

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
METHODS = ["softmax", "adversarial", "one-vs-each"]  # the last diverges
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.mark.slow
def test_the_report_shows_the_ranking_curves_and_tables_with_captions(finished, tmp_path):
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    finished.snakemake("--report", str(tmp_path / "report.zip"))
    with zipfile.ZipFile(tmp_path / "report.zip") as packed:
        packed.extractall(tmp_path)
    page = next(tmp_path.glob("*/report.html"))
    with sync_api.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        shown = browser.new_page(viewport={"width": 1400, "height": 900})
        problems = []
        shown.on("pageerror", lambda error: problems.append(str(error)))
        shown.on("request", lambda asked: problems.append(asked.url) if asked.url.startswith("http") else None)
        shown.goto(page.as_uri())
        shown.get_by_text("compared by the exact likelihood over all classes").wait_for()
        assert "Experiment tiny" in shown.inner_text("body")

        shown.get_by_text("Ranking", exact=True).first.click()
        of(shown, "the methods, by their fits", "eye").click()
        ranking = shown.frame_locator("iframe").locator("tr")
        ranking.nth(2).wait_for()
        rows = [row.split("\t") for row in ranking.all_inner_texts()]
        assert [row[1] for row in rows] == ["method", *METHODS]
        assert rows[0][2] == "test log-likelihood (nats)"

        shown.get_by_text("Results", exact=True).first.click()
        shown.get_by_text("Curves", exact=True).first.click()
        of(shown, "test-log-likelihood", "eye").first.click()
        picture = shown.locator("img[src*='test-log-likelihood'], img[src^='data:image/svg']").last
        picture.wait_for()
        assert picture.evaluate("image => image.complete && image.naturalWidth") > 100
        of(shown, "test-log-likelihood", "information-circle").first.click()
        shown.get_by_text("A line for each method: the mean over its seeds").wait_for()
        shown.screenshot(path=tmp_path / "shown.png")
        assert len(set((tmp_path / "shown.png").read_bytes())) > 200, "something is drawn"

        shown.get_by_text("Results", exact=True).first.click()
        shown.get_by_text("Tables", exact=True).first.click()
        shown.get_by_text("every evaluation, CSV").wait_for()
        browser.close()
    assert not problems


def of(shown, row, icon):
    """The button with an icon in the rows of a list of results."""
    return shown.locator("tr", has_text=row).locator(f"a[iconname='{icon}']")
