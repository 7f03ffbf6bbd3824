"""What the page of bamler2020 calls data sets and methods, and what it looks up of them."""

import math
from collections.abc import Collection, Mapping

from xsoftmax.internal.errors import InputError
from xsoftmax.lab.reproduction.estimates import Estimate, quotient
from xsoftmax.lab.reproduction.page import ours
from xsoftmax.lab.reproduction.results import Fit, Results, middle

DATASETS = {
    "icd10-subcategory-pca": "ICD-10 subcategories",
    "debian-pca": "Debian packages",
    "faces-5k": "generated tree, 5,000 classes",
    "clouds-5k": "generated clouds, 5,000 classes",
    "hierarchy-amazon-5k": "generated, of Amazon-670K's size",
    "hierarchy-wikipedia-5k": "generated, of Wikipedia-500K's size",
    "icd10-subcategory": "ICD-10 subcategories, TF-IDF",
    "debian": "Debian packages, TF-IDF",
    "amazon-670k": "Amazon-670K",
    "wikipedia-500k": "Wikipedia-500K",
}
# The paper's smaller data set, or what stands in for it.
AMAZON = ("amazon-670k", "hierarchy-amazon-5k")
# Few distinct rows and more features than these: a linear model can give each any scores.
FREE = "contingency-free"
EURLEX = "eurlex-4k"
SMALL = {"icd10-pca": "ICD-10 categories", "delicious": "Delicious", "eurlex-4k": "EURLex-4K"}
PROPOSED, UNIFORM, FREQUENCY, NCE = "adversarial", "negative-uniform", "negative-frequency", "nce-tree"
AUGMENTED, ONE_VS_EACH = "augment-reduce-advi", "one-vs-each-advi"
BASELINES = {
    UNIFORM: "uniform",
    FREQUENCY: "frequency",
    NCE: "NCE",
    AUGMENTED: "A&R",
    ONE_VS_EACH: "OVE",
}
METHODS = {PROPOSED: "adversarial", **BASELINES}
WITH_TREE = (PROPOSED, NCE)
NOT_RESPLIT, SCORES = "adversarial-no-resplit", "adversarial-scores"
NOT_NORMALIZED = "nce-tree-plain"
ADAGRAD = {"augment-reduce": "A&R, Adagrad", "one-vs-each": "OVE, Adagrad"}
SOFTMAX = "softmax"
MEASURES = {"log_likelihood": "log-likelihood", "accuracy": "accuracy"}
TUNED = {
    "learning_rate": ("optimizer", "ρ"),
    "regularizer": ("objective", "λ"),
    "prior_variance": ("optimizer", "σ₀²"),
}
NO_PRIOR = 1e5  # a variance that is as good as none


def compared(results: Results) -> dict[str, str]:
    """Name the data sets on which the proposed method meets at least one baseline."""
    return {
        key: name
        for key, name in DATASETS.items()
        if results.has(key, PROPOSED) and any(results.has(key, method) for method in BASELINES)
    }


def baselines(results: Results, dataset: str) -> list[str]:
    """Name the baselines that were trained on a data set."""
    return [method for method in BASELINES if results.has(dataset, method)]


def settings(results: Results, dataset: str, method: str) -> dict[str, float]:
    """Give what was tuned of a method, or is in place of it."""
    if not results.has(dataset, method):
        return {}
    return tuned(results.of(dataset, method)[0])


def tuned(fit: Fit) -> dict[str, float]:
    """Give what was tuned of a fit or trial, or is in place of it."""
    parameters = fit.status["parameters"]
    found = {key: parameters.get(part, {}).get(key) for key, (part, _) in TUNED.items()}
    return {key: value for key, value in found.items() if value is not None}


def written(settings: Mapping[str, float], edges: Collection[str] = ()) -> str:
    """Write settings with the paper's letters, with a star where a search has found the edge of its grid best."""
    shown = (f"{TUNED[key][1]} {value:g}{'*' * (key in edges)}" for key, value in settings.items())
    return ", ".join(shown) or "–"


def at_edge(results: Results, dataset: str, method: str) -> list[str]:
    """Name the settings that are the least or the greatest that a search has tried, where more could be tried."""
    if not n_trials(results, dataset, method):
        return []
    trials, found = results.search(dataset, method).trials, []
    for key, value in settings(results, dataset, method).items():
        tried = {trial.status["parameters"][TUNED[key][0]][key] for trial in trials}
        if len(tried) > 1 and value in {min(tried), max(tried)} - {0, NO_PRIOR}:
            found.append(key)
    return found


def tried(results: Results, dataset: str, method: str) -> str:
    """Write all values that a search has tried, with the paper's letters."""
    values: dict[str, set[float]] = {}
    for trial in results.search(dataset, method).trials if n_trials(results, dataset, method) else ():
        for key, value in tuned(trial).items():
            values.setdefault(TUNED[key][1], set()).add(value)
    return " and ".join(
        f"{letter} {', '.join(f'{value:g}' for value in sorted(some))}" for letter, some in values.items()
    )


def n_trials(results: Results, dataset: str, method: str) -> int:
    """Count the trials of a search; 0 if there was none."""
    try:
        return len(results.search(dataset, method).trials)
    except InputError:
        return 0


def most_accurate(results: Results, dataset: str, method: str) -> tuple[float, float, Fit]:
    """Give the validation accuracies of the chosen trial and of the most accurate one, and that trial."""
    search = results.search(dataset, method)
    names = [told["name"] for told in search.chosen["trials"]]
    known = {each: trial for each, trial in zip(names, search.trials, strict=True) if not trial.diverged}
    accuracy = {each: float(trial.history["validation_accuracy"].iloc[-1]) for each, trial in known.items()}
    best = max(accuracy, key=lambda each: accuracy[each])
    return accuracy[search.chosen["name"]], accuracy[best], known[best]


def is_more_accurate(results: Results, dataset: str, baseline: str, times_as: float = 1.0) -> bool | None:
    """Tell whether the proposed method is more accurate on test rows than a baseline, or so many times as accurate.

    It is too close to tell where the chosen trials have it so and the most accurate ones the other way round:
    settings were chosen by log-likelihood, and a baseline that another choice would have put ahead is not behind.
    """
    if not results.has(dataset, baseline):
        return None
    found = results.difference(dataset, PROPOSED, baseline, "accuracy", times_as).is_above
    if found is None or not (n_trials(results, dataset, PROPOSED) and n_trials(results, dataset, baseline)):
        return found
    here, there = (most_accurate(results, dataset, each)[:2] for each in (PROPOSED, baseline))
    by_chosen, by_most = (mine > times_as * other for mine, other in zip(here, there, strict=True))
    return None if by_chosen == found != by_most else found


def share_of_accuracy(results: Results, dataset: str, method: str) -> Estimate:
    """Divide a method's accuracies by the proposed method's of the same seeds."""
    return quotient(*(results.values(dataset, each, "test.accuracy") for each in (method, PROPOSED)))


def seconds(results: Results, dataset: str, method: str) -> float:
    """Give the training time of a method, the tree's fit included: the median over seeds."""
    return middle(results.values(dataset, method, "fit.seconds"))


def finals(results: Results, dataset: str, method: str) -> list[str]:
    """Write both measures at the end, of all test rows."""
    return [ours(final(results, dataset, method, measure)) for measure in MEASURES]


def final(results: Results, dataset: str, method: str, measure: str) -> Estimate:
    """Give a measure at the end, of all test rows."""
    return results.estimate(dataset, method, f"test.{measure}")


def or_least(value: float) -> float:
    """Give a number, or the least there is in place of NaN."""
    return -math.inf if math.isnan(value) else value


def times(ratio: float) -> str:
    """Write a ratio."""
    return f"{ratio:.2g} times" if ratio < 100 else f"{ratio:,.0f} times"


def told(found: Mapping[str, str]) -> str:
    """Write what was found of several things, in one line."""
    return "; ".join(f"{name}: {text}" for name, text in found.items())
