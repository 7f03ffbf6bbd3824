import json
import re
import statistics
from html.parser import HTMLParser

import pandas as pd
import pytest
from plotly.offline import get_plotlyjs

from lab.report.fake_fits import METHODS, change, kept_at, write_fits, write_search
from xsoftmax.cli import main
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.report.figures import SETTINGS
from xsoftmax.lab.report.page.document import page
from xsoftmax.lab.report.tables import number

CONFIG = "# a <comment>\nexperiment: quick & small\nmethods: [softmax]   # kept as it is\n"
EMPTY = {"meta", "br", "img", "link", "hr", "input"}


class Tags(HTMLParser):
    """Collect the addresses of a page and check that its tags are closed in order.

    ``boxes`` are the classes of the element around each table and picture; ``rows`` the classes of each row's cells;
    ``programs`` counts the scripts that would run.
    """

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.text = [], [], []
        self.around, self.boxes, self.rows = [], [], []
        self.programs = 0

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag in ("table", "img"):
            self.boxes.append(self.around[-1])
        if tag == "tr":
            self.rows.append([])
        self.programs += tag == "script" and dict(attrs).get("type") != "application/json"
        if tag in ("th", "td"):
            self.rows[-1].append(dict(attrs).get("class") or "")
        if tag not in EMPTY:
            self.open.append(tag)
            self.around.append(dict(attrs))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self.around.pop()

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open[-1:]):
            self.text.append(data)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    diverged = (("icd10", "u-max", 0), ("icd10", "u-max", 1))
    fits = write_fits(folder, datasets=("icd10", "bibtex"), seeds=(0, 1), diverged=diverged)
    write_search(folder / "search")
    searches = ["--searches", str(folder / "search")]
    assert main(["compare", *map(str, fits), *searches, "-o", str(folder)]) == 0
    (folder / "config.yaml").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def html(results):
    """The page, without the library that it holds."""
    config, output = str(results / "config.yaml"), results / "report.html"
    assert main(["report", str(results), "--config", config, "-o", str(output)]) == 0
    return own(output.read_text())


def own(page):
    before, library, after = page.partition(get_plotlyjs())
    assert library
    return before + after


@pytest.fixture(scope="module")
def tags(html):
    parser = Tags()
    parser.feed(html)
    assert not parser.open
    return parser


def test_it_holds_everything_itself(html, tags):
    outside = [address for address in tags.addresses if not address.startswith(("#", "data:"))]
    assert not outside
    assert not re.search(r"@import|url\(", html)
    assert html.count("data:image/svg+xml;base64,") == 10


def test_its_links_lead_somewhere(html, tags):
    for address in tags.addresses:
        if address.startswith("#"):
            assert f'id="{address[1:]}"' in html


def test_it_says_what_the_files_say(results, tags):
    text = " ".join(" ".join(tags.text).split())
    assert CONFIG.strip() in "".join(tags.text)
    for method in METHODS:
        assert method in text
    metrics = [json.loads((results / f"fits/bibtex/softmax/seed-{seed}/metrics.json").read_text()) for seed in (0, 1)]
    mean = sum(metric["test"]["log_likelihood"] for metric in metrics) / 2
    assert f"{mean:.3f}".replace("-", "−") in text
    for said in ("66,646 training examples", "1,918 classes", "22 test examples of classes unseen", "0.68.1"):
        assert said in text
    assert "u-max, seed 0: diverged at step" in text
    assert "By validation rows, softmax wins: test log-likelihood" in text
    assert "dimension 16, n_sampled 5, regularizer 0.1" in text
    assert "24.0 GiB" in text
    history = [pd.read_csv(results / f"fits/bibtex/one-vs-each/seed-{seed}/history.csv") for seed in (0, 1)]
    mean, spread = (f(rows.objective.iloc[-1] for rows in history) for f in (statistics.mean, statistics.stdev))
    assert f"one-vs-each one-vs-each bound {number(mean, spread)}" in text


def test_it_says_what_was_tried(html):
    said = " ".join(html.split())
    assert "What was tried for softmax" in said
    assert "One fit each on 66,646 training rows, seed 0, 20 epochs; by validation log-likelihood" in said
    assert re.search(r"learning.rate.? 0\.1</td><td>−2\.0000</td><td class=\"text\"></td>", said)
    assert re.search(r"learning.rate.? 1(?:\.0)?</td><td>−1\.0000</td><td class=\"text\">taken</td>", said)
    assert said.count("What was tried") == 1  # on one data set of two


def test_it_says_how_to_read_it(tags):
    text = " ".join(" ".join(tags.text).split())
    for said in (
        "Training objective",
        "not comparable across objectives",
        "5,000 training rows",
        "Curves",
        "Diverged",
        "Peak memory",
        "Test rows choose nothing there",
    ):
        assert said in text.partition("How to read this Who wins : ")[2]


def test_all_columns_and_figures_can_be_scrolled_to_on_a_phone(html, tags):
    assert len(tags.boxes) == html.count("<table") + html.count("<img") > 10
    assert all((box["class"], box["tabindex"]) == ("scroll", "0") for box in tags.boxes)
    assert ["overflow-x: auto" in rule for rule in rules(html, ".scroll")] == [True]
    assert all(len([each for each in row if "stick" in each.split()]) == 1 for row in tags.rows)
    assert "position: sticky; left: 0" in rules(html, ".stick")[0]
    assert "overflow-wrap: anywhere" in rules(html, "body")[0]


def test_the_text_of_figures_is_eleven_pixels_high_at_least(results, html):
    svg = (results / "figures/icd10_test-log-likelihood_by_seconds.svg").read_text()
    points = float(re.search(r'<svg [^>]*width="([\d.]+)pt"', svg)[1])
    pixels = 16 * float(re.search(r"min-width: ([\d.]+)rem", rules(html, "figure img")[0])[1])
    assert min(SETTINGS["font.size"], SETTINGS["legend.fontsize"]) * pixels / points >= 11


def test_a_table_has_the_metrics_of_its_own_data_set(tmp_path, results):
    folders = write_fits(tmp_path, ("icd10", "bibtex"), methods=("softmax",))
    several = folders[1] / "metrics.json"
    metrics = json.loads(several.read_text())
    several.write_text(json.dumps(metrics | {"test": {"log_likelihood": -1.0, "accuracy": 0.5, "p_at_3": 0.25}}))
    assert main(["compare", *map(str, folders), "-o", str(tmp_path)]) == 0
    bibtex, icd10 = (
        page(tmp_path, results / "config.yaml").partition('id="methods"')[0].split('<section id="data-icd10">')
    )
    assert ("<th>P@3</th>" in bibtex, "<th>top-3 accuracy</th>" in bibtex) == (True, False)
    assert ("<th>P@3</th>" in icd10, "<th>top-3 accuracy</th>" in icd10) == (False, True)


def test_accuracy_has_one_column(results, html):
    assert "<th>accuracy</th>" in html
    assert "<th>P@1</th>" not in html
    assert "<th>top-3 accuracy</th>" in html
    assert "P@1" not in (results / "summary.md").read_text()


def test_it_tells_which_epoch_was_kept(tmp_path, results):
    folders = write_fits(tmp_path, methods=("softmax", "u-max"))
    change(folders[0], kept=kept_at(14.0))
    assert main(["compare", *map(str, folders), "-o", str(tmp_path)]) == 0
    said = own(page(tmp_path, results / "config.yaml"))
    headings = re.findall(r"<th[^>]*>([^<]*)</th>", said.partition("</tr>")[0])
    rows = {cells[1]: cells for cells in map(cells_of, said.partition("<tbody>")[2].split("<tr>")[1:3])}
    column = headings.index("kept at epoch")
    assert [rows[name][column] for name in ("softmax", "u-max")] == ["14", "–"]  # the other one's is not known
    assert "<b>Kept at epoch</b>" in said


def test_odd_names_and_missing_values_are_shown_as_they_are(tmp_path, results):
    """Names of HTML, of mathematics, or that pandas takes for no value; no metrics; a data set without any value."""
    odd, folders = "<b id='x'>|$a_b$ & \\", write_fits(tmp_path, methods=("softmax", "u-max"))
    folders += write_fits(tmp_path, ("bibtex",), methods=("softmax",), diverged=(("bibtex", "softmax", 0),))
    change(folders[0], method=odd, message="<script>alert(1)</script>", data={}, epoch=None, parameters={})
    (folders[0] / "metrics.json").write_text("{}")
    change(folders[1], dataset="null", method="007")
    change(folders[2], dataset="long-" * 40 + "name", method="none", message=None)
    assert main(["compare", *map(str, folders), "-o", str(tmp_path)]) == 0
    said = own(page(tmp_path, results / "config.yaml"))
    parser = Tags()
    parser.feed(said)
    assert not parser.open
    texts = {text.strip() for text in parser.text}
    assert {odd, "007", "none", "null", "long-" * 40 + "name"} <= texts
    assert parser.programs == 2  # plotly and our own
    assert "<script>alert" not in said
    assert "<b id=" not in said
    assert not re.search(r"\bnan\b", " ".join(parser.text))
    assert said.count("<img") == 15
    assert "&lt;b id='x'&gt;\\|$a_b$ &amp;" in (tmp_path / "summary.md").read_text()


@pytest.mark.parametrize("name", ["../up", "a/b", "", 5])
def test_a_data_sets_name_that_leads_elsewhere_is_refused(tmp_path, name, capsys):
    folder = write_fits(tmp_path, methods=("softmax",))[0]
    change(folder, dataset=name)
    assert main(["compare", str(folder), "-o", str(tmp_path / "results")]) != 0
    assert f"dataset {name!r} is part of the figures' paths" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


GOOD = {
    "reliability": {"confidence": [0.5, 0.9], "accuracy": [0.4, 1], "n": [3, 3]},
    "confusions": {"n_wrong": 1, "n_seen": 1, "pairs": [{"true": "a", "predicted": "b", "n": 1, "of": 2}]},
}


@pytest.mark.long_cases
@pytest.mark.fault(
    "a fit's metrics that are damaged or made up, of which a report would draw curves or list classes",
    happens="nothing is compared; what was there stays",
    user="`error: …/metrics.json: confusions of test rows is not what evaluate writes; run it again for this fit`",
)
@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("reliability", {"n": [3]}),
        ("reliability", {"accuracy": ["0.4", "<b>"]}),
        ("confusions", {"pairs": [{"true": "a", "predicted": 5, "n": 1, "of": 2}]}),
        ("confusions", {"n_seen": None}),
    ],
)
def test_made_up_metrics_are_refused(tmp_path, name, damage, capsys):
    folder = write_fits(tmp_path, methods=("softmax",))[0]
    path, results = folder / "metrics.json", tmp_path / "results"
    metrics = json.loads(path.read_text()) | {key: {"test": value} for key, value in GOOD.items()}
    metrics["test"]["expected_calibration_error"] = 0.1
    path.write_text(json.dumps(metrics))
    assert main(["compare", str(folder), "-o", str(results)]) == 0
    before = (results / "fits.json").read_bytes()
    path.write_text(json.dumps(metrics | {name: {"test": GOOD[name] | damage}}))
    assert main(["compare", str(folder), "-o", str(results)]) == 1
    assert f"metrics.json: {name} of test rows is not what evaluate writes" in capsys.readouterr().err
    assert (results / "fits.json").read_bytes() == before


def rules(html, selector):
    """Give what the page's style says of a selector, outside of @media."""
    style = re.sub(
        r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", html.partition("<style>")[2].partition("</style>")[0]
    )
    found = re.findall(r"([^{}]+)\{([^{}]*)\}", style)
    return [said for names, said in found if selector in [name.strip() for name in names.split(",")]]


def cells_of(row):
    return [re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)]


def test_it_is_the_same_each_time(results, html):
    assert own(page(results, results / "config.yaml")) == html


def test_it_tells_what_mlflow_has(results):
    tracking = {"uri": "sqlite:///somewhere", "logged": [{"seed": 0}, {"seed": "search"}]}
    tracking |= {"pending": [{"reason": "no server"}]}
    (results / "tracking.json").write_text(json.dumps(tracking))
    said = page(results, results / "config.yaml")
    (results / "tracking.json").unlink()
    assert "1 of 28 fits are logged at <code>sqlite:///somewhere</code>" in said
    assert "1 fits or searches are not logged yet" in " ".join(said.split())


def test_what_is_missing_is_named(tmp_path, results):
    with pytest.raises(InputError, match=r"summary.csv is missing; run `python -m xsoftmax compare`"):
        page(tmp_path, results / "config.yaml")
    with pytest.raises(InputError, match=r"no.yaml is missing"):
        page(results, results / "no.yaml")
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(InputError, match=r"bad.yaml is not YAML"):
        page(results, tmp_path / "bad.yaml")
