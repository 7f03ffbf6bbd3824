"""The page of loss decomposition with several labels: it builds, and its verdicts follow the numbers."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from lab.reproduction.made_up import results_of
from xsoftmax.data.dataset import ArrayDataset, Split
from xsoftmax.data.label_sets import LabelSets
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.lab.papers import _yen2018_label_looks, _yen2018_methods
from xsoftmax.lab.reproduction import page_of
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import Verdict
from xsoftmax.model import Model
from xsoftmax.training.evaluator import Evaluator
from xsoftmax.training.plan import SUBSET

DATA = {"n_train": 3500, "n_classes": 500, "n_features": 40}
# P@1 of training and test rows, and seconds per epoch.
AS_IN_THE_PAPER = {
    "softmax": (0.9, 0.7, 2.5), "margin": (0.7, 0.71, 1.0), "mips": (0.4, 0.5, 0.08),
    "decomposed": (0.69, 0.7, 0.09), "sampled": (0.2, 0.2, 0.05), "softmax-large": (0.95, 0.72, 2.5),
}  # fmt: skip
OTHERWISE = {
    "softmax": (0.3, 0.4, 1.0), "margin": (0.7, 0.7, 1.0), "mips": (0.8, 0.8, 0.9), "decomposed": (0.4, 0.3, 1.1),
    "sampled": (0.9, 0.9, 1.2), "softmax-large": (0.3, 0.2, 2.5),
}  # fmt: skip
NEAR = {
    "softmax": (0.9, 0.6, 1.8), "margin": (0.7, 0.7, 1.0), "mips": (0.65, 0.5, 0.3), "decomposed": (0.6, 0.6, 0.4),
    "sampled": (0.6, 0.5, 0.5), "softmax-large": (0.9, 0.6, 2.5),
}  # fmt: skip
LEVELS = {
    "Iterations of Softmax are much slower than the others', since its gradient is dense",
    "In equal time Softmax performs similarly to Margin",
    "Per epoch Decomp-MIPS makes almost the same progress as the exact gradient of Margin",
    "The searches lead to an order of magnitude of speedup",
    "Decomp-MIPS retains the accuracy of the exact method",
    "Sampled-Softmax has extremely slow progress per iteration",
    "The technique outperforms sampling-based approximation of the gradient by a large margin",
}
ORDERS = {
    "Softmax has very good per-iteration progress, significantly more than Margin, MIPS and Decomp-MIPS",
    "MIPS has a significant drop in its training accuracy compared with Margin and Decomp-MIPS",
    "Sampled-Softmax could not reach a comparable accuracy to other methods even after one day",
    "Sampled-Softmax has fast iterations",
    "The technique consistently improves the accuracy of search-based approximation of the gradient",
}
UNTOLD = ("close to convergence", "by-products", "orders of magnitude faster", "concentrated on a relatively small")
GAINS = "Softmax gains from a rate of 10, beyond the paper's"
ONE_LABEL = 0.1  # P@1 of one label for all rows


@pytest.fixture(autouse=True)
def _no_rows(monkeypatch):
    """Made-up results have no rows of which one label could be that of most."""
    floors = dict.fromkeys((_yen2018_label_looks.TRAIN, _yen2018_label_looks.TEST), ONE_LABEL)
    monkeypatch.setattr(_yen2018_label_looks, "one_label", lambda results, dataset: floors)


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch, request):
    """Draw figures where it is asked whether the page builds, as that takes longer than the rest."""
    if "it_builds" not in request.node.name:
        monkeypatch.setattr(_yen2018_methods, "figure_of", lambda panels: Figure())


def made_up(folder, methods, datasets=("debtags", "delicious-sets"), seeds=3):
    named = {
        name if "-" in name else f"{name}-{kind}": values
        for name, values in methods.items()
        for kind in ("paper", "epochs")
    }
    return results_of(folder, {
        (dataset, method): {"end.train_p_at_1": train, "end.test_p_at_1": test, "fit.seconds_per_epoch": seconds,
                            "fit.data": DATA}
        for dataset in datasets
        for method, (train, test, seconds) in named.items()
    }, seeds)  # fmt: skip


def verdicts(results):
    page = page_of("yen2018-labels", results)
    assert [claim.says for claim in page.claims if claim.ours] == [GAINS]
    untold = [claim for claim in page.claims if any(words in claim.says for words in UNTOLD)]
    assert [claim.finding.verdict for claim in untold] == [Verdict.OPEN] * len(UNTOLD)
    return {claim.says: claim.finding.verdict for claim in page.claims if claim not in untold}


@pytest.mark.parametrize(
    ("methods", "verdict"),
    [(AS_IN_THE_PAPER, Verdict.REPRODUCED), (OTHERWISE, Verdict.NOT)],
    ids=["paper", "otherwise"],
)
def test_verdicts_follow_the_numbers(methods, verdict, tmp_path):
    assert verdicts(made_up(tmp_path, methods)) == dict.fromkeys(LEVELS | ORDERS | {GAINS}, verdict)


def test_levels_may_be_reached_in_shape(tmp_path):
    found = verdicts(made_up(tmp_path, NEAR))
    assert {says: found[says] for says in LEVELS} == dict.fromkeys(LEVELS, Verdict.IN_SHAPE)


def test_orders_may_hold_in_part_or_be_too_close(tmp_path):
    """One of three of the softmax's, whose others differ by noise; none of MIPS's; three of four of the sampled's."""
    methods = AS_IN_THE_PAPER | {"mips": (0.89999, 0.19, 0.08), "softmax-large": (0.9, 0.7, 2.5)}
    found = verdicts(made_up(tmp_path, methods | {"decomposed": (0.89999, 0.69, 0.09)}))
    assert found[GAINS] == Verdict.CLOSE
    assert (
        found["Sampled-Softmax could not reach a comparable accuracy to other methods even after one day"]
        == Verdict.IN_SHAPE
    )
    assert found[next(says for says in ORDERS if says.startswith("MIPS has"))] == Verdict.NOT
    assert found[next(says for says in ORDERS if says.startswith("Softmax has"))] == Verdict.CLOSE


def test_progress_per_epoch_is_compared_as_far_as_both_have_come(tmp_path):
    """MIPS drops after its first epoch, before which the softmax has ended."""
    results = made_up(tmp_path, AS_IN_THE_PAPER)
    for fit in results.fits:
        loss = fit.method.split("-")[0]
        if loss in ("margin", "decomposed", "mips"):
            fit.history["train_p_at_1"] = [0.1, 0.7, 0.3 if loss == "mips" else 0.7]
        if loss == "softmax":
            fit.history["epoch"] = [0.0, 0.5, 1.0]
    assert verdicts(results)[next(says for says in ORDERS if says.startswith("MIPS has"))] == Verdict.REPRODUCED
    assert "After 1.0 epochs, which all have come to" in page_of("yen2018-labels", results).markdown()


def test_a_method_that_always_diverges_is_behind_nothing(tmp_path):
    results = made_up(
        tmp_path, AS_IN_THE_PAPER | {"mips-large": (0.4, 0.5, 0.1), "decomposed-large": (0.4, 0.5, 0.1)}
    )
    for fit in results.fits:
        if fit.method.endswith("-large"):
            fit.status["status"] = "diverged"
    assert "nan" not in page_of("yen2018-labels", results).markdown()


def test_one_seed_tells_nothing(tmp_path):
    found = verdicts(made_up(tmp_path, AS_IN_THE_PAPER, ["debtags"], seeds=1))
    assert found == dict.fromkeys(LEVELS, Verdict.OPEN) | dict.fromkeys(ORDERS | {GAINS}, Verdict.CLOSE)


def test_larger_rates_that_diverge_on_a_data_set_are_a_loss_there(tmp_path):
    results = made_up(tmp_path, AS_IN_THE_PAPER)
    results.fits[:] = [fit for fit in results.fits if (fit.dataset, fit.method) != ("debtags", "softmax-large")]
    assert verdicts(results)[GAINS] == Verdict.NOT  # one of two
    results.fits[:] = [fit for fit in results.fits if fit.method != "softmax-large"]
    claim = next(each for each in page_of("yen2018-labels", results).claims if each.says == GAINS)
    assert claim.finding.verdict == Verdict.OPEN


def test_one_data_set_that_differs_is_enough_to_refuse_a_factor(tmp_path):
    results = made_up(tmp_path, AS_IN_THE_PAPER)
    for fit in results.of("delicious-sets", "mips-epochs"):
        fit.status["seconds_per_epoch"] = 0.9
    assert verdicts(results)["The searches lead to an order of magnitude of speedup"] == Verdict.NOT


def test_it_builds_without_all_methods_and_then_judges_nothing(tmp_path):
    page = page_of("yen2018-labels", made_up(tmp_path, {"margin-paper": (0.8, 0.7, 1.5)}))
    assert not page.claims
    assert set(page.figures) == {"accuracy-debtags", "accuracy-delicious-sets"}
    assert all(text not in page.markdown() for text in ("nan", "inf"))


def test_larger_rates_that_diverge_in_the_run_are_a_loss(tmp_path):
    results = made_up(tmp_path, AS_IN_THE_PAPER)
    for fit in results.of("debtags", "softmax-large"):
        fit.status["status"] = "diverged"
    assert verdicts(results)[GAINS] == Verdict.NOT  # one of two


def test_two_that_name_one_label_keep_nothing_and_are_no_slower(tmp_path):
    """Margin and Decomp-MIPS name one label with t in iterations; elsewhere the search keeps half."""
    apart = {"decomposed-epochs": (0.3, 0.3, 0.09), "decomposed-paper": (0.1, 0.1, 0.09)}
    margin = {"margin-epochs": (0.6, 0.6, 1.0), "margin-paper": (0.1, 0.1, 1.0)}
    others = {name: values for name, values in AS_IN_THE_PAPER.items() if name not in ("margin", "decomposed")}
    claims = page_of("yen2018-labels", made_up(tmp_path, others | apart | margin)).claims
    claim = next(each for each in claims if each.says == "Decomp-MIPS retains the accuracy of the exact method")
    assert claim.finding.verdict == Verdict.NOT
    assert "the least of 2 shares: −0.60" in claim.finding.n  # gains of 0.2 and 0.5
    assert "left out as neither has learned: debtags, t in iterations; delicious-sets, t in it" in claim.here
    slow = next(each for each in claims if each.says.startswith("The technique outperforms sampling"))
    assert "left out" not in slow.here


def test_two_that_name_one_label_are_left_out_where_one_is_to_be_ahead(tmp_path):
    others = {name: values for name, values in AS_IN_THE_PAPER.items() if name not in ("softmax", "sampled")}
    alike = {f"{loss}-paper": (0.1, 0.1, 1.0) for loss in ("softmax", "sampled")}
    apart = {"softmax-epochs": (0.6, 0.6, 1.0), "sampled-epochs": (0.1, 0.1, 0.05)}
    claims = page_of("yen2018-labels", made_up(tmp_path, others | alike | apart)).claims
    slow = next(each for each in claims if each.says.startswith("Sampled-Softmax has extremely slow progress"))
    assert slow.finding.verdict == Verdict.REPRODUCED
    assert "left out as neither has learned: debtags, t in iterations; delicious-sets, t in" in slow.here
    behind = next(each for each in claims if each.says.startswith("Sampled-Softmax could not reach"))
    assert "2 pairs are left out as neither has learned" in behind.why
    assert f"{len(behind.here.split('against')) - 1} pairs of methods" in behind.finding.n


def test_two_searches_are_compared_beyond_the_end_of_the_exact_method(tmp_path):
    """MIPS is behind decomposed search when both end, and ahead of it where Margin ends."""
    results = made_up(tmp_path, AS_IN_THE_PAPER)
    for fit in results.fits:
        loss = fit.method.split("-")[0]
        if loss == "margin":
            fit.history["epoch"] = [0.0, 0.25, 0.5]
        if loss in ("mips", "decomposed"):
            fit.history["train_p_at_1"] = [0.1, 0.4, 0.5] if loss == "mips" else [0.0, 0.3, 0.69 + fit.seed / 1e3]
    claim = next(
        each for each in page_of("yen2018-labels", results).claims if each.says.startswith("MIPS has a significant")
    )
    assert claim.finding.verdict == Verdict.REPRODUCED
    assert "0.691 ± 0.001 (Decomp-MIPS) against 0.500" in claim.here


def test_what_is_said_at_the_papers_rates_alone_is_told(tmp_path):
    """Softmax is ahead of Margin at the paper's rates, and at the best ones behind all three."""
    methods = AS_IN_THE_PAPER | {"softmax-large": (0.1, 0.8, 2.5)}
    claims = page_of("yen2018-labels", made_up(tmp_path, methods)).claims
    ahead = next(each for each in claims if each.says.startswith("Softmax has very good"))
    assert ahead.finding.verdict == Verdict.IN_SHAPE
    assert "by way: t in iterations 6, 0, 0; t in epochs 6, 0, 0; best rates 0, 0, 6" in ahead.here
    assert "at the paper's rates alone the verdict would be *reproduced*" in ahead.why
    alike = next(each for each in claims if each.says.startswith("In equal time Softmax"))
    assert "t in epochs *reproduced*; best rates *reproduced in shape*; at the paper's rates alone: *rep" in alike.why


def test_fast_iterations_are_faster_ones_by_whatever_factor(tmp_path):
    fast = "Sampled-Softmax has fast iterations"
    found = [
        verdicts(made_up(tmp_path / str(seconds), AS_IN_THE_PAPER | {"sampled": (0.2, 0.2, seconds)}))[fast]
        for seconds in (2.4, 2.5, 2.6)
    ]
    assert found == [Verdict.REPRODUCED, Verdict.CLOSE, Verdict.NOT]


def test_speed_is_not_asked_of_too_few_labels(tmp_path):
    results = made_up(tmp_path, OTHERWISE)
    claim = "The searches lead to an order of magnitude of speedup"
    assert verdicts(results)[claim] == Verdict.NOT
    for fit in results.fits:
        fit.status["data"] = DATA | {"n_classes": 399}
    assert verdicts(results)[claim] == Verdict.OPEN


def test_what_was_not_looked_at_yet_has_no_number(tmp_path):
    """Looks are at epochs 0, 1 and 2, and here at 0, 1 and 3 with one seed."""
    results = made_up(tmp_path, AS_IN_THE_PAPER, ["debtags"])
    assert _yen2018_methods.is_looked_at(results, "debtags", "sampled-paper", "epoch", 1.0)
    late = results.of("debtags", "sampled-paper")[0]
    late.history["epoch"] = [0.0, 3.0, 4.0]
    assert not _yen2018_methods.is_looked_at(results, "debtags", "sampled-paper", "epoch", 2.0)
    text = page_of("yen2018-labels", results).markdown()
    assert "\n| Sampled-Softmax | – | 0.200" in text
    assert "\n| Margin | 0.7" in text


def test_losses_that_larger_rates_do_not_help_are_named(tmp_path):
    def search(method, *values):
        return SimpleNamespace(dataset="debtags", method=method, chosen={"trials": [{"value": v} for v in values]})

    searches = [
        search("softmax-epochs", 0.3, 0.7), search("softmax-large", 0.4, None),
        search("margin-epochs", 0.3, 0.5), search("margin-large", 0.6, None), search("mips-epochs", 0.2),
    ]  # fmt: skip
    results = Results("made-up", [], searches, {})
    assert _yen2018_methods.worse_with_larger_rates(results, "debtags") == ["Softmax"]
    assert _yen2018_methods.worse_with_larger_rates(results, "delicious-sets") == []


def test_rates_that_tie_and_those_at_the_end_of_a_grid_are_named(tmp_path):
    def search(method, values):
        trials = [
            SimpleNamespace(status={"parameters": {"optimizer": {"learning_rate": rate}}})
            for rate in (0.01, 0.1, 1.0)
        ]
        told = [{"name": str(k), "value": value} for k, value in enumerate(values)]
        return SimpleNamespace(dataset="debtags", method=method, trials=trials, chosen={"name": "0", "trials": told})

    searches = [
        search("softmax-paper", (0.2, 0.2, 0.1)), search("margin-paper", (0.1, 0.2, 0.3)),
        search("mips-paper", (0.1, 0.3, None)), search("sampled-paper", (None, None, None)),
        search("decomposed-paper", (None, 0.1, 0.1)),
    ]  # fmt: skip
    texts, tables = [], []
    page = SimpleNamespace(text=texts.append, table=lambda head, rows: tables.append(rows))
    _yen2018_methods.rates(Results("made-up", [], searches, {}), page, "debtags", "validation P@1")
    assert texts == [
        "Validation rows do not tell the best rates apart, and the lowest is taken: Softmax; Decomp-MIPS.",
        "The best rate is the highest of the method's own grid: Margin.",
    ]
    assert len(tables[0]) == 15


def test_progress_is_what_is_beyond_one_label_for_all_rows(tmp_path):
    """Decomp-MIPS has more than four fifths of Margin's P@1, and half of its gain."""
    methods = AS_IN_THE_PAPER | {"margin": (0.14, 0.14, 1.0), "decomposed": (0.12, 0.12, 0.09)}
    claims = page_of("yen2018-labels", made_up(tmp_path, methods)).claims
    kept = next(each for each in claims if each.says == "Decomp-MIPS retains the accuracy of the exact method")
    assert kept.finding.verdict == Verdict.NOT
    assert "debtags, t in epochs, −0.50" in kept.here


def test_what_factors_would_be_of_others_is_told(tmp_path):
    """Margin's iterations are no faster than the softmax's, those of searches are; beside it they are faster, too."""
    claims = page_of("yen2018-labels", made_up(tmp_path, AS_IN_THE_PAPER | {"margin": (0.7, 0.71, 2.5)})).claims
    slower = next(each for each in claims if each.says.startswith("Iterations of Softmax are much slower"))
    assert slower.finding.verdict == Verdict.NOT
    assert slower.why.endswith("of the searches alone the verdict would be *reproduced*")
    searches = next(each for each in claims if each.says.startswith("The searches lead to an order"))
    assert "*reproduced*: times as fast as Softmax: debtags 31.25" in searches.why


def test_the_time_of_sampling_is_told_and_not_judged(tmp_path):
    claims = page_of("yen2018-labels", made_up(tmp_path, AS_IN_THE_PAPER)).claims
    claim = next(each for each in claims if each.says.startswith("It is orders of magnitude faster"))
    assert claim.finding.verdict == Verdict.OPEN
    assert "debtags, t in epochs, " in claim.here


def test_one_label_for_all_rows_is_the_best_model_that_names_one(tmp_path, monkeypatch):
    """Of more training rows than are looked at; models that have a bias for one label, and no weights."""
    monkeypatch.undo()
    rng, n_classes = np.random.default_rng(0), 4
    splits = {}
    for name, n in {"train": SUBSET + 900, "validation": 20, "test": 200}.items():
        y = rng.integers(n_classes, size=n).astype(np.int32)
        pairs = np.tile(np.arange(n), 2), np.concatenate([y, rng.integers(n_classes, size=n)])
        splits[name] = Split(np.zeros((n, 1), np.float32), y, None, LabelSets.of_pairs(*pairs, n))
    data = ArrayDataset("tags", splits, np.arange(n_classes))
    monkeypatch.setattr(Results, "data", lambda self, name: nullcontext(data))
    found = _yen2018_label_looks.one_label(Results("made-up", [], [], {}), "tags")
    method = SimpleNamespace(l2=0.0, calibration="none", proposal=SimpleNamespace(finds=False), positives="mean")
    objective = SimpleNamespace(sums_exponentials=True)
    evaluator = Evaluator(data, splits["train"], objective, None, method, ThreadPool())
    biases = np.stack([np.zeros((n_classes, n_classes)), np.eye(n_classes)], axis=-1).astype(np.float32)
    rows = [evaluator.evaluate(Model.of_rows(W, data.class_names, 1), np.zeros(0)) for W in biases]
    assert found == {name: pytest.approx(max(row[name] for row in rows)) for name in found}
    assert set(found) == {"train_p_at_1", "test_p_at_1"}
