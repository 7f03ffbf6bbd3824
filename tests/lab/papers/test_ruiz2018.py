"""The page of augment and reduce: it builds, and its verdicts follow the numbers."""

import pytest

from lab.reproduction.made_up import results_of
from xsoftmax.lab.reproduction import numbers_of, page_of
from xsoftmax.lab.reproduction.page import Verdict

NUMBERS = numbers_of("ruiz2018")


def made_up(folder, change=lambda measures, dataset, method: measures):
    """Fits whose numbers are the paper's own, or what ``change`` makes of them."""
    fits = {}
    for dataset, rows in NUMBERS["table_3"].items():
        for method, row in rows.items():
            measures = {f"test.{key}": value for key, value in row.items()}
            measures["fit.seconds_per_epoch"] = NUMBERS["table_2"][dataset].get(method, 1.0) / 10
            measures["end.objective"] = -row["log_likelihood"] * (2.0 if method == "one-vs-each-advi" else 1.0)
            fits[dataset, method] = change(measures, dataset, method)
    for method in ("probit", "logistic"):
        for kind in ("published", "no-entropy"):
            worse = {"test.log_likelihood": -5.0, "test.accuracy": 0.3, "end.objective": 9.0}
            fits["bibtex-whole", f"{method}-{kind}"] = worse
    return results_of(folder, fits)


def verdicts(results):
    return {claim.says: claim.verdict for claim in page_of("ruiz2018", results).claims}


def test_the_papers_own_numbers_are_reproduced(tmp_path):
    found = verdicts(made_up(tmp_path))
    assert len(found) == 7
    assert set(found.values()) == {Verdict.REPRODUCED}


def test_other_numbers_are_not(tmp_path):
    def spoilt(measures, dataset, method):
        if method == "augment-reduce-advi":
            worse = {"test.log_likelihood": -9.0, "test.accuracy": 0.1, "end.objective": 99.0}
            return measures | worse | {"fit.seconds_per_epoch": 9.0}
        return measures | {"test.log_likelihood": -8.0}

    found = verdicts(made_up(tmp_path, spoilt))
    ours = [says for says in found if says.startswith("(ours)")]
    assert {says: verdict for says, verdict in found.items() if says not in ours} == dict.fromkeys(
        [says for says in found if says not in ours], Verdict.NOT
    )


@pytest.mark.parametrize("dataset", NUMBERS["table_3"])
def test_every_number_of_the_paper_is_of_a_method_that_the_config_trains(dataset):
    assert set(NUMBERS["table_2"][dataset]) <= set(NUMBERS["table_3"][dataset])
