"""The learning rate, tuned in short trials."""

from typing import Any

from xsoftmax.advice.trial import Ground, Trial
from xsoftmax.methods import Method, build_method, merged

FACTORS = (0.3, 1.0, 3.0)


def tune_rate(ground: Ground, n_samples: int) -> list[dict[str, Any]]:
    """Train ``n_samples`` samples at a few rates around the method's; say what each came to.

    Without validation rows, or with samples for less than one step, nothing is tried.

    Returns
    -------
    list of dict
        ``rate``, ``seconds`` of its steps, and ``log_likelihood`` of validation rows (nats), None if it diverged.
    """
    method = ground.method
    size = method.batch.size if method.proposal.draws else method.proposal.batch_size
    n_samples = n_samples // size * size
    found: list[dict[str, Any]] = []
    if not ground.validation.n_samples:
        return found
    for factor in FACTORS if n_samples else ():
        trial = Trial(ground, factor * method.optimizer.learning_rate)
        while trial.finite and trial.samples < n_samples:
            trial.advance(n_samples - trial.samples)
        value = trial.log_likelihood()
        finite = value > float("-inf")
        found.append({"rate": trial.rate, "seconds": trial.seconds, "log_likelihood": value if finite else None})
    return found


def at_rate(method: Method, rate: float) -> Method:
    """The same method at another learning rate."""
    settings = merged(method.settings, {"optimizer": {"learning_rate": rate}})
    return build_method(method.name, settings | {"source": method.source})
