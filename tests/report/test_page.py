import json
import re
import statistics
from html.parser import HTMLParser

import pandas as pd
import pytest

from report.fake_fits import METHODS, write_fits, write_search
from xsoftmax.cli import main
from xsoftmax.errors import InputError
from xsoftmax.report.page import page
from xsoftmax.report.tables import number

CONFIG = "# a <comment>\nexperiment: quick & small\nmethods: [softmax]   # kept as it is\n"
EMPTY = {"meta", "br", "img", "link", "hr", "input"}


class Tags(HTMLParser):
    """Collect the addresses of a page and check that its tags are closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
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
    config, output = str(results / "config.yaml"), results / "report.html"
    assert main(["report", str(results), "--config", config, "-o", str(output)]) == 0
    return output.read_text()


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
    assert "Best test log-likelihood: softmax" in text
    assert "dimension 16, regularizer 0.1" in text
    assert "24.0 GiB" in text
    history = [pd.read_csv(results / f"fits/bibtex/one-vs-each/seed-{seed}/history.csv") for seed in (0, 1)]
    mean, spread = (f(rows.objective.iloc[-1] for rows in history) for f in (statistics.mean, statistics.stdev))
    assert f"one-vs-each one-vs-each bound {number(mean, spread)}" in text


def test_it_says_what_was_tried(html):
    said = " ".join(html.split())
    assert "What was tried for softmax" in said
    assert "One fit each on 66,646 training rows, seed 0, 20 epochs; by validation log likelihood" in said
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
    ):
        assert said in text.partition("How to read this Test log-likelihood")[2]


def test_it_is_the_same_each_time(results, html):
    assert page(results, results / "config.yaml") == html


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
