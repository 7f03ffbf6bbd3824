"""Metrics of rows with several labels: against values of napkinXC, and against slow loops over all classes."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import naive
from xsoftmax.data.dataset import Split
from xsoftmax.data.label_sets import LabelSets
from xsoftmax.evaluation import links, metrics
from xsoftmax.evaluation.label_ranks import NO_HIT
from xsoftmax.evaluation.likelihood import score_rows, score_together
from xsoftmax.evaluation.metrics import RowScores
from xsoftmax.evaluation.metrics.propensity_scored import inverse_propensity
from xsoftmax.evaluation.metrics.recall import thirds
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.model import Model

# Scores of 6 rows for 12 classes, the labels of each row, the training rows of each class, and pairs of a row and a
# class that do not count.
SCORES = [
    [11, 4, 0, 5, 6, 7, 3, 9, 1, 8, 10, 2],
    [0, 10, 3, 9, 2, 1, 8, 11, 7, 6, 5, 4],
    [5, 10, 11, 0, 9, 1, 6, 7, 4, 3, 2, 8],
    [11, 10, 2, 9, 0, 7, 3, 1, 6, 5, 4, 8],
    [3, 8, 5, 6, 4, 9, 10, 7, 1, 11, 0, 2],
    [1, 8, 3, 10, 5, 4, 7, 11, 0, 6, 9, 2],
]
LABELS = [[0, 3, 7], [1], [2, 4, 5, 6, 8, 9, 11], [0, 10], [1, 3, 6, 9], [5, 7, 10]]
COUNTS, N_TRAIN = np.array([40, 25, 16, 12, 9, 7, 5, 4, 3, 2, 1, 0]), 57
FILTERED = [(0, 3), (1, 5), (2, 2), (3, 0), (4, 9), (5, 0)]
# What napkinXC 0.7.2 gives (napkinxc.metrics: precision_at_k, ndcg_at_k, recall_at_k, macro_recall_at_k,
# psprecision_at_k, psndcg_at_k; inverse propensities by Jain_et_al_inverse_propensity with A = 0.55, B = 1.5), of
# each row's classes by falling score; those that are filtered are taken out of the predictions, as pyxclib does.
PINNED = {
    "p_at_1": (0.833333333, 0.5),
    "p_at_3": (0.555555556, 0.5),
    "p_at_5": (0.4, 0.366666667),
    "ndcg_at_1": (0.833333333, 0.5),
    "ndcg_at_3": (0.686865308, 0.545567549),
    "ndcg_at_5": (0.685255293, 0.548354512),
    "recall_at_5": (0.668650794, 0.58531746),
    "recall_at_10": (0.976190476, 0.795634921),
    "macro_recall_at_5": (0.625, 0.541666667),
    "psp_at_1": (0.552159632, 0.345973911),
    "psp_at_3": (0.585178753, 0.57702002),
    "psp_at_5": (0.636899111, 0.59372656),
    "psndcg_at_1": (0.552159632, 0.345973911),
    "psndcg_at_3": (0.557221392, 0.479911092),
    "psndcg_at_5": (0.588497522, 0.490013507),
}
# Of classes 0, 5 and 11, for A and B of most data sets, of Wikipedia's and of Amazon's.
INVERSE_PROPENSITIES = {
    (0.55, 1.5): [1.649007657, 2.552372229, 5.030195201],
    (0.5, 0.4): [1.566477421, 2.323602038, 6.693027627],
    (0.6, 2.6): [1.690947437, 2.689382651, 4.699191043],
}
K = 23


def sets_of(lists):
    """Lists of classes, one for each row, some of which may be empty."""
    starts = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    return LabelSets(starts, np.array([k for each in lists for k in sorted(each)], np.int32))


def lists_of(sets):
    return [sets.classes[a:b].tolist() for a, b in zip(sets.starts, sets.starts[1:], strict=False)]


def pairs_as_lists(pairs, n_rows):
    return [[k for i, k in pairs if i == row] for row in range(n_rows)]


def model_of(W):
    W = np.asarray(W, np.float32)
    return Model.of_rows(W, [f"class {k}" for k in range(len(W))], W.shape[1] - 1)


def by_scores(scores):
    """A model and rows, one-hot, whose scores these are."""
    scores = np.asarray(scores, np.float32)
    W = np.concatenate([scores.T, np.zeros((scores.shape[1], 1), np.float32)], axis=1)
    return model_of(W), np.eye(len(scores), dtype=np.float32)


def score(scores, labels, filtered=None, **blocks):
    """Score rows by a model with these scores; add what is known of its training rows."""
    model, X = by_scores(scores)
    y = np.array([min(each) for each in labels], np.int32)
    without = None if filtered is None else sets_of(filtered)
    return score_rows(model, X, y, None, False, sets_of(labels), without, **blocks)


def known(found, counts=COUNTS, n_train=N_TRAIN, propensity=(0.55, 1.5)):
    names = ("log_likelihood", "rank", "confidence", "classes")
    return RowScores(
        *(getattr(found, name) for name in names),
        class_counts=counts,
        label_sets=found.label_sets,
        label_ranks=found.label_ranks,
        n_train=n_train,
        propensity=propensity,
    )


@pytest.mark.parametrize("blocks", [{}, {"classes_at_a_time": 5}])
@pytest.mark.parametrize("filtered", [False, True])
def test_values_are_those_of_napkinxc(filtered, blocks):
    without = pairs_as_lists(FILTERED, 6) if filtered else None
    measured = metrics.measure(known(score(SCORES, LABELS, without, **blocks)), "end")
    assert {name: measured[name] for name in PINNED} == {
        name: pytest.approx(values[filtered], abs=1e-6) for name, values in PINNED.items()
    }
    assert measured["accuracy"] == measured["p_at_1"]
    assert math.isnan(measured["top_3_accuracy"])


@pytest.mark.parametrize("constants", INVERSE_PROPENSITIES)
def test_inverse_propensities_are_those_of_napkinxc(constants):
    found = inverse_propensity(COUNTS, N_TRAIN, *constants)
    assert found[[0, 5, 11]] == pytest.approx(INVERSE_PROPENSITIES[constants], abs=1e-6)
    assert inverse_propensity(COUNTS, N_TRAIN)[0] == pytest.approx(INVERSE_PROPENSITIES[0.55, 1.5][0], abs=1e-6)


def naive_ranks(scores, labels, filtered):
    """Classes before each label, by looking at every pair of classes."""
    ranks = []
    for k in sorted(labels):
        if k in filtered:
            ranks.append(None)
            continue
        before = 0
        for other in range(len(scores)):
            if other == k or other in filtered:
                continue
            a, b = scores[other], scores[k]
            if other not in labels:
                before += not a < b
            elif math.isnan(b):
                before += not math.isnan(a) or other < k
            else:
                before += a > b or (a == b and other < k)
        ranks.append(before)
    return ranks


def naive_metrics(ranks, labels, inverse, groups):
    """All metrics of sets, from the ranks of each row's labels, row by row."""
    rows = [list(zip(sorted(own), of_row, strict=True)) for own, of_row in zip(labels, ranks, strict=True)]
    n, found = len(rows), {}

    def hits(row, k):
        return [(label, r) for label, r in row if r is not None and r < k]

    def ideal(row, k):
        return sum(1 / math.log2(place + 2) for place in range(min(k, len(row))))

    for k in (1, 3, 5):
        found[f"p_at_{k}"] = sum(len(hits(row, k)) / k for row in rows) / n
        found[f"ndcg_at_{k}"] = (
            sum(sum(1 / math.log2(r + 2) for _, r in hits(row, k)) / ideal(row, k) for row in rows) / n
        )
        best = [sorted((inverse[label] for label, _ in row), reverse=True)[:k] for row in rows]
        found[f"psp_at_{k}"] = sum(inverse[label] for row in rows for label, _ in hits(row, k)) / sum(map(sum, best))
        gain = sum(inverse[label] / math.log2(r + 2) / ideal(row, k) for row in rows for label, r in hits(row, k))
        most = sum(
            value / math.log2(place + 2) / ideal(row, k)
            for row, values in zip(rows, best, strict=True)
            for place, value in enumerate(values)
        )
        found[f"psndcg_at_{k}"] = gain / most
    for k in (5, 10):
        found[f"recall_at_{k}"] = sum(len(hits(row, k)) / len(row) for row in rows) / n
    of_class = {}
    for row in rows:
        for label, r in row:
            of_class.setdefault(label, []).append(r is not None and r < 5)
    found["macro_recall_at_5"] = sum(sum(each) / len(each) for each in of_class.values()) / len(of_class)
    for name in ("head", "torso", "tail"):
        chosen = [hit for label, each in of_class.items() if groups[label] == name for hit in each]
        found[f"{name}_recall_at_5"] = sum(chosen) / len(chosen)
    return found


def naive_thirds(counts):
    """Go down the classes by frequency, and see how much of all labels lies behind."""
    groups, behind = {}, 0
    for k in sorted(range(len(counts)), key=lambda k: (-counts[k], k)):
        share = behind / sum(counts)
        groups[k] = "head" if share < 1 / 3 else "torso" if share < 2 / 3 else "tail"
        behind += counts[k]
    return groups


def problem(seed, n_rows=40, ties=False, most=9):
    """Scores, many of them equal if they are to tie, labels and classes that do not count, some of them labels."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, (n_rows, K)) if ties else 3 * rng.standard_normal((n_rows, K))
    labels = [sorted(rng.permutation(K)[: rng.integers(1, most)].tolist()) for _ in range(n_rows)]
    filtered = [sorted(rng.permutation(K)[: rng.integers(0, 4)].tolist()) for _ in range(n_rows)]
    return scores.astype(np.float32), labels, filtered


@pytest.mark.parametrize("blocks", [{}, {"classes_at_a_time": 7, "rows_at_a_time": 16}])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("filters", [False, True])
def test_ranks_and_metrics_are_those_of_slow_loops(filters, ties, blocks):
    counts = np.random.default_rng(7).integers(0, 50, K)
    for seed in range(3):
        scores, labels, filtered = problem(seed, ties=ties)
        found = score(scores, labels, filtered if filters else None, **blocks)
        filtered = filtered if filters else [[]] * len(labels)
        ranks = [naive_ranks(*row) for row in zip(scores, labels, filtered, strict=True)]
        flat = [NO_HIT if rank is None else rank for row in ranks for rank in row]
        assert found.label_ranks.dtype == np.int64
        assert found.label_ranks.tolist() == flat
        assert found.rank.tolist() == [min(NO_HIT if r is None else r for r in row) for row in ranks]
        measured = metrics.measure(known(found, counts, 300, (0.6, 2.6)), "end")
        inverse = [1 + (math.log(300) - 1) * 3.6**0.6 * (n + 2.6) ** -0.6 for n in counts]
        expected = naive_metrics(ranks, labels, inverse, naive_thirds(counts))
        assert {name: measured[name] for name in expected} == pytest.approx(expected, abs=1e-12)


def test_the_likelihood_of_a_row_is_the_mean_over_its_labels_whatever_is_filtered():
    scores, labels, filtered = problem(3)
    log_p = naive.log_probabilities(scores)
    expected = [log_p[i, own].mean() for i, own in enumerate(labels)]
    for blocks in ({}, {"classes_at_a_time": 4}):
        for without in (None, filtered):
            found = score(scores, labels, without, **blocks)
            assert found.log_likelihood == pytest.approx(expected, rel=2e-6, abs=2e-6)
            assert found.confidence == pytest.approx(np.exp(log_p).max(axis=1), rel=1e-5)


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
@pytest.mark.parametrize("blocks", [{}, {"classes_at_a_time": 5}])
def test_sets_of_one_label_are_as_single_labels(storage, blocks):
    rng = np.random.default_rng(0)
    X = storage(rng.standard_normal((70, 6)).astype(np.float32))
    model, y = model_of(rng.standard_normal((K, 7))), rng.integers(K, size=70).astype(np.int32)
    plain = score_rows(model, X, y, **blocks)
    sets = score_rows(model, X, y, label_sets=sets_of([[k] for k in y.tolist()]), **blocks)
    for name in ("log_likelihood", "rank", "confidence"):
        assert np.array_equal(getattr(sets, name), getattr(plain, name))
    assert np.array_equal(sets.label_ranks, plain.rank)
    assert plain.label_sets is plain.label_ranks is None


def test_what_is_filtered_takes_no_rank_of_single_labels_either():
    model, X = by_scores([[3, 2, 1, 0]] * 3)
    filtered = sets_of([[0], [], [2]])
    found = score_rows(model, X, np.full(3, 2, np.int32), filtered=filtered)
    assert found.rank.tolist() == [1, 2, NO_HIT]
    assert found.label_sets is found.label_ranks is None
    assert metrics.measure(found, "fit")["top_3_accuracy"] == pytest.approx(2 / 3)


def test_a_label_that_is_filtered_is_no_hit_however_few_classes_there_are():
    found = known(score([[2, 1]], [[0, 1]], [[0]]), np.array([3, 1]), 4)
    assert found.label_ranks.tolist() == [NO_HIT, 0]
    assert metrics.measure(found, "fit")["recall_at_5"] == 0.5


@pytest.mark.parametrize("blocks", [{}, {"classes_at_a_time": 2}])
def test_nan_counts_against_the_model(blocks):
    nan = np.nan
    rows = [[0, 1, 2, 3], [nan, 1, 2, 3], [0, 1, nan, 3], [nan, 1, nan, 3], [nan] * 4]
    for row in rows:
        model = model_of(np.array(row)[:, None])
        found = score_rows(
            model, np.zeros((1, 0), np.float32), np.zeros(1, np.int32), label_sets=sets_of([[0, 2]]), **blocks
        )
        assert found.label_ranks.tolist() == naive_ranks(row, [0, 2], [])
        assert np.isnan(found.log_likelihood[0]) == np.isnan(row).any()


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_threads_change_no_bit_and_many_blocks_are_exact(storage):
    rng = np.random.default_rng(5)
    n, n_classes = 120, 2600
    X, W = (rng.integers(-20, 20, shape).astype(np.float32) for shape in ((n, 10), (n_classes, 11)))  # exact sums
    labels = [rng.permutation(n_classes)[: rng.integers(1, 30)].tolist() for _ in range(n)]
    s, y = naive.scores(X, W), np.array([min(each) for each in labels], np.int32)
    model, sets = model_of(W), sets_of(labels)
    one = score_rows(model, storage(X), y, label_sets=sets, rows_at_a_time=40)
    expected = [rank for row, own in zip(s, labels, strict=True) for rank in naive_ranks_fast(row, own)]
    assert one.label_ranks.tolist() == expected
    found = score_rows(model, storage(X), y, ThreadPool(3), label_sets=sets, rows_at_a_time=40)
    assert np.array_equal(found.label_ranks, one.label_ranks)
    assert np.array_equal(found.log_likelihood, one.log_likelihood)


def naive_ranks_fast(scores, labels):
    """As ``naive_ranks``, of many classes."""
    own = sorted(labels, key=lambda k: (-scores[k], k))
    others = np.delete(scores, own)
    return [own.index(k) + int((others >= scores[k]).sum()) for k in sorted(labels)]


@pytest.mark.long_cases
@pytest.mark.parametrize("link", ["probit", "logistic"])
def test_other_links_rank_alike_and_have_their_own_likelihoods(link):
    scores, labels, filtered = problem(1, n_rows=9, most=5)
    model, X = by_scores(scores)
    model = Model(model.W, model.class_names, model.n_features, b=model.b, link=link)
    y = np.array([min(each) for each in labels], np.int32)
    found = score_rows(model, X, y, label_sets=sets_of(labels), filtered=sets_of(filtered))
    assert np.array_equal(found.label_ranks, score(scores, labels, filtered).label_ranks)
    log_p = links.load(link).log_probabilities(scores, np.tile(np.arange(K), (9, 1)))
    assert found.log_likelihood == pytest.approx([log_p[i, own].mean() for i, own in enumerate(labels)], rel=1e-9)


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_splits_scored_together_are_as_each_alone(storage):
    rng = np.random.default_rng(2)
    model = model_of(rng.standard_normal((K, 7)))
    splits = []
    for n in (9, 0, 14):
        _, labels, _ = problem(n, n)
        X = storage(rng.standard_normal((n, 6)).astype(np.float32))
        splits.append(Split(X, np.array([min(each) for each in labels], np.int32), None, sets_of(labels)))
    for split, found in zip(splits, score_together(model, splits), strict=True):
        alone = score_rows(model, split.X, split.y, label_sets=split.label_sets)
        assert np.array_equal(found.label_ranks, alone.label_ranks)
        assert np.array_equal(found.rank, alone.rank)
        assert np.allclose(found.log_likelihood, alone.log_likelihood, rtol=1e-6)
        assert lists_of(found.label_sets) == lists_of(split.label_sets)
    plain = Split(splits[0].X, splits[0].y)
    mixed = score_together(model, [plain, splits[2]])
    assert mixed[0].label_sets is None
    assert np.array_equal(mixed[0].rank, score_rows(model, plain.X, plain.y).rank)
    assert mixed[1].label_ranks.size == splits[2].label_sets.classes.size


def test_thirds_of_label_occurrences():
    assert thirds(np.array([10, 50, 30, 10])).tolist() == [2, 0, 1, 2]
    assert thirds(np.array([1, 1, 1])).tolist() == [0, 1, 2]
    assert thirds(np.array([0, 0])).tolist() == [0, 0]
    counts = np.random.default_rng(0).zipf(1.5, 200)
    names = ("head", "torso", "tail")
    assert {k: names[third] for k, third in enumerate(thirds(counts))} == naive_thirds(counts.tolist())


def test_a_third_without_labels_has_no_value():
    found = metrics.measure(known(score([[3, 2, 1]], [[0]]), np.array([1, 1, 1]), 3), "end")
    assert found["head_recall_at_5"] == 1
    assert math.isnan(found["torso_recall_at_5"])
    assert math.isnan(found["tail_recall_at_5"])


def test_metrics_of_sets_may_judge_and_no_rows_have_no_value():
    assert metrics.judge_of_split("validation_psp_at_3").higher_is_better
    none = known(score(np.zeros((0, 12)), []))
    measured = metrics.measure(none, "end")
    assert all(math.isnan(value) for value in measured.values())


def test_the_likelihood_of_a_sigmoid_is_that_of_the_whole_set_of_labels():
    from xsoftmax.evaluation.links import sigmoid

    S = np.random.default_rng(0).normal(0, 2, (3, 5)).astype(np.float32)
    starts, classes = np.array([0, 2, 3, 3]), np.array([1, 4, 0], np.int32)
    own = [[1, 4], [0], []]
    p = 1 / (1 + np.exp(-S.astype(float)))
    expected = [sum(np.log(p[i, k] if k in own[i] else 1 - p[i, k]) for k in range(5)) for i in range(3)]
    np.testing.assert_allclose(sigmoid.log_likelihoods(S, starts, classes), expected, rtol=1e-12)
