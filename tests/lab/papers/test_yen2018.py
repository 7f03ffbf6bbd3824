"""The page of loss decomposition: it builds, and its verdicts follow the numbers."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from lab.papers.yen2018_made_up import (
    AS_IN_THE_PAPER,
    N_CLASSES,
    OTHERWISE,
    SOONER,
    SPARSE,
    growing,
    made_up,
    of_means,
    verdicts,
    with_kinds,
    with_models,
)
from xsoftmax.lab.papers import _yen2018_methods, _yen2018_sampling, _yen2018_theory
from xsoftmax.lab.papers._yen2018_methods import judge_least, sooner, values_at
from xsoftmax.lab.papers._yen2018_search_claims import times_fewer
from xsoftmax.lab.reproduction import page_of
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import Verdict

ACCURACY = {
    "In equal time Softmax progresses much slower than Margin",
    "Within an unfinished epoch Margin's progress is much better than Softmax's",
    "Sampled-Softmax's progress per iteration is small",
    "MIPS converges at an accuracy much lower than Decomp-MIPS",
    "The technique consistently improves the accuracy of search-based approximation of the gradient",
    "Approximation of the gradient by searches often sacrifices accuracy for efficiency",
    "The gap between them gets bigger when running for more iterations",
    "Sampled-Softmax makes slower overall progress than the MIPS-based approaches",
}
SEARCH = "MIPS and Decomp-MIPS speed up iterations of the margin by one to two orders of magnitude"
FOUND = (
    "Decomposition significantly improves the accuracy of the search-based approximation of the gradient; one "
    "step of messages suffices to improve performance"
)
SAMPLED = "Sampled-Softmax has much faster iterates"
BY_FAR = "The technique outperforms sampling-based approximation of the gradient by a large margin"
MARGIN = "Margin's updates are faster than Softmax's, since its gradient is sparse"
TIMES = {SEARCH, SAMPLED}
SLOPES = {
    SPARSE,
    "The gradient typically is concentrated on a relatively small number of classes",
    "The number of rows of W that a gradient of the margin updates is much smaller than K",
    "It is much smaller than Q, the number of classes retrieved for a query, too",
}
THEOREM = "Greedy message passing is guaranteed to converge, its gap after t steps below Theorem 2's bound"
STEPS = (
    "T = B s / (4 mu epsilon) steps with tau_2 = epsilon / (4 a ln T) suffice for a gap of epsilon, where s is the "
    "sum of the squares, and a of the sizes, of the best messages"
)
DISTANCES = "Negative squared Mahalanobis distances are scores of eq. 1, with D = d + 2"
MU = "For the cross-entropy (eq. 2) mu is 1"
PROVED = {
    THEOREM,
    STEPS,
    DISTANCES,
    "Theorem 1: the loss is the least value of a sum of losses of blocks, over messages between them",
    "Smoothing by mu makes the margin's gradient Lipschitz with constant 1/mu, and moves the loss by O(mu)",
    "The error of a loss that scores the classes below a threshold as 0 is bounded by the threshold times the loss's "
    "Lipschitz constant, 2 for the max-margin loss, O(P log K) for the cross-entropy of P labels",
}
OPEN = 28


@pytest.fixture(autouse=True)
def _of_means(monkeypatch):
    monkeypatch.setattr(Results, "difference", of_means)


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch, request):
    """Draw figures where it is asked whether the page builds, as that takes longer than the rest."""
    if "it_builds" not in request.node.name:
        monkeypatch.setattr(_yen2018_methods, "figure_of", lambda panels: Figure())


def judged(page):
    return {
        says: verdict
        for says, verdict in verdicts(page).items()
        if verdict != Verdict.OPEN and says not in PROVED | {MU}
    }


def test_orders_of_the_paper_are_reproduced(tmp_path, monkeypatch):
    results = growing(made_up(tmp_path, with_kinds(AS_IN_THE_PAPER)))
    page = page_of("yen2018", with_models(results, monkeypatch, spread=10.0))
    assert judged(page) == dict.fromkeys(ACCURACY | TIMES | SLOPES | {FOUND, BY_FAR, SOONER}, Verdict.REPRODUCED)
    assert len(page.claims) == len(judged(page)) + OPEN + len(PROVED | {MU})
    assert not any(claim.ours for claim in page.claims)
    assert f"| Margin | {N_CLASSES - 1:,} |" in page.markdown()


def test_other_orders_are_not(tmp_path, monkeypatch):
    page = page_of(
        "yen2018", with_models(growing(made_up(tmp_path, with_kinds(OTHERWISE))), monkeypatch, spread=1e-5)
    )
    assert judged(page) == dict.fromkeys(ACCURACY | TIMES | SLOPES | {FOUND, BY_FAR, SOONER}, Verdict.NOT)


def test_a_lead_that_goes_away_at_larger_rates_is_not_the_papers_in_full(tmp_path):
    methods = with_kinds(AS_IN_THE_PAPER) | {"softmax-large": (0.9, 2.0, 1)}
    claim = next(
        c for c in page_of("yen2018", made_up(tmp_path, methods)).claims if c.says.startswith("In equal time")
    )
    assert claim.finding.verdict == Verdict.IN_SHAPE
    assert claim.finding.n.startswith(
        "3 ways to choose rates, test rows compared in pairs: 2 as claimed, 0 too close, 1"
    )
    assert "best rates 0.900 ± 0.000, 0.800" in claim.here
    assert "behind with best rates: its lead at the paper's rates turns round at the best ones" in claim.why


def test_equal_methods_are_too_close(tmp_path):
    equal = with_kinds(dict.fromkeys(AS_IN_THE_PAPER, (0.5, 1.0, 0.5)))
    assert judged(page_of("yen2018", made_up(tmp_path, equal))) == dict.fromkeys(
        ACCURACY | {FOUND}, Verdict.CLOSE
    ) | (dict.fromkeys(TIMES | {BY_FAR}, Verdict.NOT))


def test_each_way_to_choose_rates_is_told_its_own_numbers(tmp_path):
    methods = with_kinds(AS_IN_THE_PAPER) | {"mips-epochs": (0.25, 0.1, 0.15)}
    page = page_of("yen2018", made_up(tmp_path, methods))
    here = {claim.says: claim.here.replace(" ± 0.000", "") for claim in page.claims}
    found = "faces, t in iterations, 0.200, 0.500; faces, t in epochs, 0.150, 0.500"
    assert found in here[FOUND]
    equal_time = next(text for says, text in here.items() if says.startswith("Sampled-Softmax makes slower"))
    assert "t in iterations, 0.100, 0.300, 0.700; faces, t in epochs, 0.100, 0.250, 0.700; faces, best" in equal_time


def test_a_gap_that_does_not_grow_or_is_none_is_no_gap_that_grows(tmp_path):
    gap = "The gap between them gets bigger when running for more iterations"
    shrinking = made_up(tmp_path, with_kinds(AS_IN_THE_PAPER))  # accuracies fall to their last values
    assert verdicts(page_of("yen2018", shrinking))[gap] == Verdict.NOT
    behind = growing(made_up(tmp_path / "behind", with_kinds(AS_IN_THE_PAPER | {"decomposed": (0.2, 0.11, 0.5)})))
    for fit in behind.fits:  # the lead is negative, but less so than before
        if fit.method.startswith("decomposed"):
            fit.history.loc[:1, "test_accuracy"] = 0.0
    assert verdicts(page_of("yen2018", behind))[gap] == Verdict.NOT


def test_factors_may_be_there_in_shape(tmp_path):
    methods = AS_IN_THE_PAPER | {"margin": (0.8, 1.7, 1), "sampled": (0.1, 0.5, 1), "mips": (0.3, 0.4, 0)}
    page = page_of("yen2018", made_up(tmp_path, with_kinds(methods)))
    found = verdicts(page)
    assert {found[says] for says in TIMES} == {Verdict.IN_SHAPE}
    assert found[MARGIN] == Verdict.OPEN  # seconds per epoch are not those of the backward pass
    told = next(claim.here for claim in page.claims if claim.says == MARGIN)
    assert told.startswith("times as fast as Softmax: ")
    assert told.endswith(", by seconds per epoch")


def test_one_seed_tells_no_order(tmp_path):
    results = made_up(tmp_path, with_kinds(AS_IN_THE_PAPER))
    results = Results(results.name, [fit for fit in results.fits if fit.seed == 0], [], {})
    found = verdicts(page_of("yen2018", results))
    assert {found[says] for says in ACCURACY | {FOUND}} == {Verdict.CLOSE}
    assert {found[says] for says in TIMES | {BY_FAR, SOONER}} == {Verdict.OPEN}


@pytest.mark.parametrize("missing", [["sampled"], ["softmax", "sampled", "mips", "decomposed"]], ids=str)
def test_it_builds_with_what_there_is(missing, tmp_path):
    methods = {name: values for name, values in AS_IN_THE_PAPER.items() if name not in missing}
    page = page_of("yen2018", made_up(tmp_path, with_kinds(methods)))
    assert set(page.figures) == {"accuracy-faces"}
    assert all(text not in page.markdown() for text in ("nan", "inf"))


def test_of_real_features_only_searches_are_judged(tmp_path):
    page = page_of("yen2018", made_up(tmp_path, with_kinds(AS_IN_THE_PAPER), ("debian-pca",)))
    assert set(judged(page)) == {
        says for says in ACCURACY | {SEARCH, FOUND} if any(word in says for word in ("MIPS", "earch", "gap"))
    } | {BY_FAR}
    assert set(page.figures) == {"accuracy-debian-pca"}


def test_one_slow_search_on_one_data_set_is_enough_to_refuse_a_factor(tmp_path):
    results = made_up(tmp_path, with_kinds(AS_IN_THE_PAPER), ("debian-pca", "faces"))
    for fit in results.of("debian-pca", "mips-epochs"):
        fit.status["seconds_per_epoch"] = 1.1
    page = page_of("yen2018", results)
    assert verdicts(page)[SEARCH] == Verdict.NOT
    assert set(page.figures) == {"accuracy-faces", "accuracy-debian-pca"}


def test_accuracy_after_some_epochs_is_between_those_of_looks(tmp_path):
    results = made_up(tmp_path, {"margin-paper": (0.5, 1.0, 1)})
    at = values_at(results, "faces", "margin-paper", "train_accuracy", "epoch", 1.5)
    assert at == pytest.approx([0.525] * 3, rel=1e-3)


@pytest.mark.parametrize(
    ("fast", "slow", "times"),
    [((0.4, 0.8), (0.2, 0.4), 10.0), ((0.2, 0.8), (0.2, 0.4), 1 / 0.4), ((0.1, 0.2), (0.3, 0.6), 0.1)],
)
def test_the_time_to_what_both_reach_is_between_looks(fast, slow, times, tmp_path):
    """At 0.1 and 1 seconds; the first is there at its first look, after a third of the way, or behind."""
    results = made_up(tmp_path, {"decomposed-paper": (0.5, 1.0, 1), "sampled-paper": (0.5, 1.0, 1)})
    for method, values in (("decomposed-paper", fast), ("sampled-paper", slow)):
        for fit in results.of("faces", method):
            fit.history["test_accuracy"] = [0.0, *values]
            fit.history["seconds"] = [0.0, 0.1, 1.0]
    found = sooner(results, "faces", "decomposed-paper", "sampled-paper", "test_accuracy")
    assert (found.mean, found.n) == (pytest.approx(times), 3)


def test_levels_beside_sampling_may_be_reached_in_shape(tmp_path):
    results = growing(made_up(tmp_path, with_kinds(AS_IN_THE_PAPER | {"decomposed": (0.14, 0.11, 0.5)})))
    for fit in results.of("faces", "decomposed-paper"):
        fit.history["test_accuracy"] = [0.0, 0.098, 0.14]
    found = verdicts(page_of("yen2018", results))
    assert {found[BY_FAR], found[SOONER]} == {Verdict.IN_SHAPE}


def test_looks_too_late_to_tell_a_factor_tell_none(tmp_path):
    results = growing(made_up(tmp_path, with_kinds(AS_IN_THE_PAPER)))
    for fit in results.fits:
        fit.history["seconds"] = [0.0, 0.05, 1.0]
    assert verdicts(page_of("yen2018", results))[SOONER] == Verdict.OPEN


def test_the_least_is_judged():
    high, low = Estimate(20, 0.1, 3), Estimate(3, 0.1, 3)
    assert judge_least([high, low], "factors", 10, 2).verdict == Verdict.IN_SHAPE
    assert judge_least([high, low], "factors", 10, 2).n.startswith("the least of 2 factors: 3.00")
    assert judge_least([high, Estimate.of([None])], "factors", 10, 2).verdict == Verdict.OPEN
    assert judge_least([], "factors", 10, 2).verdict == Verdict.OPEN


def test_messages_end_at_the_loss_of_whole_scores(monkeypatch, tmp_path):
    """Two thirds of the way after one step, and all of it where no slope is left out."""
    blocks = np.random.default_rng(1).standard_normal((4, 20))
    passed = _yen2018_theory.messages(blocks, 200, 0.0)
    assert passed[0].gap > passed[1].gap > 0
    assert passed[-1].gap == pytest.approx(0, abs=1e-6)
    assert _yen2018_theory.messages(blocks, 200, 0.3)[-1].gap > 0.01  # a threshold stops it before
    results = made_up(tmp_path, with_kinds(AS_IN_THE_PAPER))
    monkeypatch.setattr(_yen2018_theory, "messages", lambda *_: [_yen2018_theory.Passed(2.0, 1.0)] * 30)
    found = verdicts(page_of("yen2018", results))
    assert {found[THEOREM], found[STEPS]} == {Verdict.NOT}


def test_what_is_proved_is_checked_by_formulas_that_may_fail(monkeypatch, tmp_path):
    results = made_up(tmp_path, with_kinds(AS_IN_THE_PAPER))
    found = verdicts(page_of("yen2018", results))
    assert {found[says] for says in PROVED} == {Verdict.REPRODUCED}
    assert found[MU] == Verdict.NOT  # of several labels
    monkeypatch.setattr(_yen2018_theory, "LABELS", (1, 2))
    monkeypatch.setattr(_yen2018_theory, "_as_scores", lambda x, y, M: (np.hstack([y, y]), np.hstack([x, x])))
    loss = _yen2018_theory._loss
    monkeypatch.setattr(_yen2018_theory, "_loss", lambda scores: -9 * loss(scores))  # concave, and too steep
    monkeypatch.setattr(_yen2018_theory, "_hinge", lambda scores: 9 * scores.sum(axis=1))
    found = verdicts(page_of("yen2018", results))
    assert Verdict.REPRODUCED not in {found[says] for says in PROVED - {THEOREM, STEPS}}
    assert found[MU] == Verdict.REPRODUCED


def test_a_query_scores_the_clusters_and_a_hundredth_of_the_classes():
    assert times_fewer(10_000) == 50
    assert round(times_fewer(672_000)) == 99


def test_where_sampling_names_no_row_there_is_no_quotient(tmp_path):
    """One of two ways to choose rates is left out, and the other judged."""
    methods = with_kinds(AS_IN_THE_PAPER)
    accuracy, *others = methods["sampled-paper"]
    assert accuracy
    page = page_of("yen2018", made_up(tmp_path, methods | {"sampled-paper": (0.0, *others)}))
    claim = next(each for each in page.claims if each.says == BY_FAR)
    assert "left out where it is right in no row of a seed: faces, t in iterations;" in claim.why
    assert "t in iterations" not in claim.here
    assert "t in epochs" in claim.here


def claim_of(results, says):
    return next(each for each in page_of("yen2018", results).claims if each.says == says)


def test_what_the_speedup_would_be_in_other_ways_is_told(tmp_path):
    """With t in iterations searches are four times as fast as Margin."""
    methods = with_kinds(AS_IN_THE_PAPER) | {"margin-paper": (0.8, 0.44, 1)}
    claim = claim_of(made_up(tmp_path, methods), SEARCH)
    assert claim.finding.verdict == Verdict.REPRODUCED
    assert "; with t in iterations the verdict would be *reproduced in shape*: 4.40, 4.00" in claim.why


def test_places_whose_looks_come_too_late_are_named_with_what_they_tell(tmp_path):
    """Of sampling with t in epochs the last look is too soon for a factor of 100 to be seen."""
    results = growing(made_up(tmp_path, with_kinds(AS_IN_THE_PAPER)))
    for fit in results.of("faces", "sampled-epochs"):
        fit.history["seconds"] = [0.0, 0.005, 0.4]
    claim = claim_of(results, SOONER)
    assert "left out, as their looks cannot tell that, and what they tell: faces, t in epochs (" in claim.why
    assert "t in epochs" not in claim.here


def test_what_searches_have_at_half_of_their_time_is_told(tmp_path):
    """Looks are at 0, 0.5 and 1 s; accuracy falls from 1.2 to 1.1 and 1 times its last."""
    gap = "The gap between them gets bigger when running for more iterations"
    claim = claim_of(made_up(tmp_path, with_kinds(AS_IN_THE_PAPER)), gap)
    assert "at half of the time: faces, t in iterations, 0.330 ± 0.000, 0.770 ± 0.000;" in claim.here


@pytest.mark.parametrize(("last", "verdict"), [(2.0, "reproduced"), (200.0, "not reproduced")])
def test_what_searches_sacrifice_after_equal_epochs_is_told(last, verdict, tmp_path):
    """MIPS is behind in equal time; its last look is after as many epochs as Margin's, or after far more."""
    methods = {name: values for name, values in AS_IN_THE_PAPER.items() if name in ("margin", "mips")}
    results = made_up(tmp_path, with_kinds(methods))
    for fit in results.fits:
        if fit.method.startswith("mips"):
            fit.history["epoch"], fit.history["train_accuracy"] = [0.0, 1.0, last], [0.0, 0.9 * (last > 2), 0.3]
    claim = claim_of(results, "Approximation of the gradient by searches often sacrifices accuracy for efficiency")
    assert claim.finding.verdict == Verdict.REPRODUCED
    assert f"after equal epochs, of MIPS the verdict would be *{verdict}*" in claim.why


def test_orders_at_rates_that_no_row_chose_are_counted(tmp_path):
    """With t in iterations all trials of sampling came to nothing: two of six orders, one for each search."""
    search = SimpleNamespace(
        dataset="faces", method="sampled-paper", trials=[], chosen={"trials": [{"value": 0.0}, {"value": 0.0}]}
    )
    results = made_up(tmp_path, with_kinds(AS_IN_THE_PAPER))
    said = _yen2018_sampling._of_ties(
        Results("made-up", results.fits, [search], {}),
        [("faces", "paper"), ("faces", "epochs")],
        [("paper", True), ("epochs", True), ("paper", True), ("epochs", None)],
    )
    assert said.startswith("2 of the 3 as claimed are where several rates of Sampled-Softmax came to the same")


@pytest.mark.parametrize(("n_rows", "apart"), [(3000, False), (300_000, True), (0, True)])
def test_rates_are_told_apart_by_two_standard_errors(n_rows, apart):
    """Of 3,000 rows 7 are nothing."""
    assert _yen2018_methods._told_apart(0.1937, 0.196, n_rows) == apart


@pytest.mark.parametrize(("rows", "n_rows"), [(None, 6344), (2000, 2000)])
def test_of_validation_rows_those_that_are_looked_at_count(rows, n_rows):
    fit = SimpleNamespace(dataset="debian-pca", status={"data": {"n_validation": 6344}, "rows_looked_at": rows})
    assert _yen2018_methods._n_validation(Results("made-up", [fit], [], {}), "debian-pca") == n_rows
