"""Pages of papers: cells, verdicts, and what is written."""

import json

import numpy as np
import pytest

from lab.reproduction.made_up import results_of
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.figures import Line, Panel, figure_of, lines_of
from xsoftmax.lab.reproduction.page import (
    AFTER,
    MEANWHILE,
    Page,
    beside,
    comparison,
    ours,
    overview,
)
from xsoftmax.lab.reproduction.rules import judge_numbers, judge_orders, not_tested


def test_numbers_stand_beside_one_another():
    assert beside(0.5, Estimate(0.25, 0.01, 3), 2) == ["0.50", "0.25 ± 0.01", "−0.25"]
    assert beside(0.5, Estimate(0.75, 0.01, 3), 2)[2] == "+0.25"
    assert beside(None, Estimate(0.75, 0.01, 3), 2) == ["–", "0.75 ± 0.01", "–"]
    assert beside(0.5, Estimate.of([None]), 2)[1:] == ["– (1 diverged)", "–"]
    assert ours(Estimate(-1.0, float("nan"), 1), 1) == "−1.0"


def test_a_page_tells_whose_code_made_its_fits(tmp_path):
    commits = {"softmax": "0123456789abcdef", "sgd": "fedcba9876543210+"}
    fits = {("a", method): {"fit.git_commit": commit} for method, commit in commits.items()}
    text = Page("ruiz2018", "Title", "Author, 2000", results_of(tmp_path, fits)).markdown()
    assert "on a machine, by the code of 0123456789 and fedcba9876+; means" in text
    assert "by the code" not in Page("ruiz2018", "", "", results_of(tmp_path / "none", {("a", "sgd"): {}})).markdown()


def test_a_page_counts_the_rules_that_were_not_written_before(tmp_path):
    page = Page("ruiz2018", "Title", "Author, 2000", results_of(tmp_path, {("a", "sgd"): {}}))
    page.claim("it works", "0.25", judge_orders([True]), "because")
    page.claim("it flies", "–", not_tested("there is no wing"), AFTER)  # which no rule judges
    before = "Each rule was written down before the run that it judges"
    assert f"{before}. A ±" in page.markdown()
    page.claim("it swims", "0.5", judge_orders([True]), f"in water; {AFTER}")
    page.claim("so does ours", "0.5", judge_numbers([True]), MEANWHILE, ours=True)
    assert f"{before}, but for 2 of 3, of which the last column says so. A ±" in page.markdown()


def test_a_page_is_written_with_its_figures(tmp_path):
    results = results_of(tmp_path / "fits", {("a", "softmax"): {"test.accuracy": 0.25}})
    page = Page("ruiz2018", "Title", "Author, 2000", results)
    page.section("Table")
    measures = {"accuracy": ("accuracy", "test.accuracy", 2)}
    numbers = {"a": {"softmax": {"accuracy": 0.3}, "absent": {"accuracy": 0.1}}}
    comparison(page, numbers, measures, {"softmax": "SOFT"})
    lines = lines_of(results, "a", {"softmax": "SOFT", "absent": "none"}, "objective", of_y=lambda y: -y)
    assert [line.label for line in lines] == ["SOFT"]
    assert lines[0].y[-1] == pytest.approx(-1, rel=1e-3)
    page.figure("curve", figure_of([Panel("a", [*lines, Line("flat", lines[0].x, lines[0].x)], "x", "y")]), "A curve")
    page.claim("it works", "0.25", judge_orders([False]), "because")
    page.claim("it flies", "–", not_tested("there is no wing"))
    page.claim("so does ours", "0.5", judge_numbers([True]), ours=True)
    (tmp_path / "out/ruiz2018").mkdir(parents=True)
    (tmp_path / "out/ruiz2018/old.svg").touch()
    page.write(tmp_path / "out")
    text = (tmp_path / "out/ruiz2018.md").read_text()
    assert "| a | SOFT | 0.30 | 0.25 ± 0.00 | −0.05 |" in text
    assert "absent" not in text
    judged = "1 comparison: 0 as claimed, 0 too close, 1 reversed; by *orders*; "
    assert f"| it works | 0.25 | **not reproduced** | {judged}" in text
    assert "better if 1 fewer were reversed | because |" in text
    assert "| it flies | – | **not tested here** | there is no wing |" in text
    assert "| we say | here |" in text
    assert "| so does ours | 0.5 | **reproduced** | 1 of 1 numbers agree; by *numbers*;" in text
    assert "*orders*: an order counts where the 95 % interval" in text
    assert "3 fits, seeds 0, 1, 2" in text
    assert "](ruiz2018/curve.svg)" in text
    assert sorted(path.name for path in (tmp_path / "out/ruiz2018").iterdir()) == ["curve.svg", "verdicts.json"]
    assert "| [Title](ruiz2018.md) | 0 | 0 | 0 | 1 | 1 | 1 of 1 |" in overview(tmp_path / "out")
    (tmp_path / "out/yen2018").mkdir()
    claim = {"says": "so", "verdict": "reproduced", "ours": False}
    old = {"title": "Old", "claims": [claim, claim | {"rule": "a rule"}]}
    (tmp_path / "out/yen2018/verdicts.json").write_text(json.dumps(old))
    assert "| [Old](yen2018.md) † | 2 | 0 | 0 | 0 | 0 | – |" in overview(tmp_path / "out")
    assert overview(tmp_path / "out").count("†") == 2
    before = (tmp_path / "out/ruiz2018/curve.svg").read_bytes()
    page.write(tmp_path / "out")
    assert (tmp_path / "out/ruiz2018/curve.svg").read_bytes() == before


def test_a_legend_has_an_order_if_one_is_given():
    x = np.arange(2.0)
    panels = [
        Panel(title, [Line(label, x, x) for label in labels], "x", "y")
        for title, labels in (("a", "cb"), ("b", "ab"))
    ]
    for first, expected in (((), "cba"), (("a", "b", "none"), "abc")):
        texts = figure_of(panels, first=first).legends[0].get_texts()
        assert "".join(text.get_text() for text in texts) == expected
