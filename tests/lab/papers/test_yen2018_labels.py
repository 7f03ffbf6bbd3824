"""The page of loss decomposition with several labels: it builds, and its verdicts follow the numbers."""

import pytest

from lab.reproduction.made_up import results_of
from xsoftmax.lab.reproduction import page_of
from xsoftmax.lab.reproduction.page import Verdict

DATA = {"n_train": 3500, "n_classes": 500, "n_features": 40}
# P@1 of training and test rows, and seconds per epoch.
AS_IN_THE_PAPER = {
    "softmax-paper": (0.9, 0.7, 2.5), "margin-paper": (0.7, 0.7, 1.0), "mips-paper": (0.4, 0.5, 0.08),
    "decomposed-paper": (0.69, 0.69, 0.09), "sampled-paper": (0.2, 0.2, 0.05), "softmax-large": (0.9, 0.8, 2.5),
}  # fmt: skip
OTHERWISE = {
    "softmax-paper": (0.3, 0.4, 1.0), "margin-paper": (0.7, 0.7, 1.0), "mips-paper": (0.8, 0.8, 0.9),
    "decomposed-paper": (0.4, 0.3, 1.1), "sampled-paper": (0.9, 0.9, 0.9), "softmax-large": (0.3, 0.2, 2.5),
}  # fmt: skip


def made_up(folder, methods, datasets=("debtags", "delicious-sets")):
    return results_of(folder, {
        (dataset, method): {"end.train_p_at_1": train, "end.test_p_at_1": test, "fit.seconds_per_epoch": seconds,
                            "fit.data": DATA}
        for dataset in datasets
        for method, (train, test, seconds) in methods.items()
    })  # fmt: skip


@pytest.mark.parametrize(
    ("methods", "verdict"),
    [(AS_IN_THE_PAPER, Verdict.REPRODUCED), (OTHERWISE, Verdict.NOT)],
    ids=["paper", "otherwise"],
)
def test_verdicts_follow_the_numbers(methods, verdict, tmp_path):
    page = page_of("yen2018-labels", made_up(tmp_path, methods))
    assert {claim.says: claim.verdict for claim in page.claims if claim.verdict != verdict} == {}
    assert len(page.claims) == 11
    assert set(page.figures) == {"accuracy-debtags", "accuracy-delicious-sets"}


def test_one_data_set_that_differs_is_enough_to_refuse_a_factor(tmp_path):
    fast = made_up(tmp_path / "fast", AS_IN_THE_PAPER, ["debtags"])
    slow = made_up(tmp_path / "slow", AS_IN_THE_PAPER | {"mips-paper": (0.4, 0.5, 0.9)}, ["delicious-sets"])
    fast.fits.extend(slow.fits)
    verdicts = {claim.says: claim.verdict for claim in page_of("yen2018-labels", fast).claims}
    assert verdicts["The searches lead to an order of magnitude of speedup"] == Verdict.NOT


def test_it_builds_without_all_methods_and_then_judges_nothing(tmp_path):
    page = page_of("yen2018-labels", made_up(tmp_path, {"margin-paper": (0.8, 0.7, 1.5)}))
    assert not page.claims
    assert all(text not in page.markdown() for text in ("nan", "inf"))
