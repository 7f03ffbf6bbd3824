"""What cannot be trained together, and why: messages that name both partners, shared by solvers."""

from collections.abc import Iterable
from typing import Any

from xsoftmax.gpu.device import NUMBA, SINGLE
from xsoftmax.proposals import parts_of

# What an optimizer needs beside a gradient, in words.
NEEDS = {
    "raise_bound": "a variable per sample with a raise_bound",
    "proximal": "a proximal step, solved for the weights it ends at",
}


def named(method: Any) -> tuple[str, str, str]:
    """Name a method's objective, proposal and optimizer, as messages do."""
    objective, proposal, optimizer = (
        f"{axis} {method.settings[axis]['name']}" for axis in ("objective", "proposal", "optimizer")
    )
    return objective, proposal, optimizer


def first_broken(rules: Iterable[tuple[Any, str]]) -> str:
    """Give the message of the first rule whose condition holds, or nothing."""
    return next((message for broken, message in rules if broken), "")


def missing_offer(method: Any) -> tuple[Any, str]:
    """Compare what the optimizer needs with what the objective offers."""
    objective, _, optimizer = named(method)
    offers, needs = method.objective.offers, method.optimizer.needs.removeprefix("full_")
    return (
        needs not in offers,
        f"{optimizer} needs {NEEDS.get(needs, needs)}, {objective} has only {', '.join(offers)}; "
        "take objective double-sum, or optimizer sgd or adagrad",
    )


def rules_of_shrinkage(method: Any) -> list[tuple[Any, str]]:
    """What makes weights smaller in every step, and whether the optimizer goes with it."""
    optimizer = named(method)[2]
    return [
        (
            method.l2 and not method.optimizer.takes_l2,
            f"l2 is {method.l2:g}, which {optimizer} does not apply; take optimizer sgd or lbfgs, or l2: 0 "
            f"and decay: {method.l2:g}, which leaves the gradient alone",
        ),
        (
            method.l2 and method.decay,
            f"l2 is {method.l2:g} and decay {method.decay:g}; for {optimizer} they are the same; set one",
        ),
    ]


def not_excluding(method: Any) -> tuple[Any, str]:
    """Ask for draws, of objectives that are a mean over them."""
    objective, proposal, _ = named(method)
    return (
        not method.objective.excludes_true,
        f"{objective} is a mean over drawn classes, {proposal} draws none; take uniform, frequency or tree",
    )


def not_word_by_word(method: Any, batch: bool) -> tuple[Any, str]:
    """Ask for steps sample by sample, where they are longer along some features than along others."""
    _, proposal, optimizer = named(method)
    return (
        method.frequency_power and batch,
        f"frequency_power is {method.frequency_power:g}, which is for steps sample by sample; {proposal} and "
        f"{optimizer} take them for a batch; leave frequency_power out, or take a proposal that draws and no batch",
    )


def rules_of_draws(method: Any) -> list[tuple[Any, str]]:
    """What no method that draws can be made of."""
    objective, proposal, _ = named(method)
    of, by = method.objective, method.proposal
    n_joint, n_head = getattr(of, "n_joint", 0), getattr(by, "n_head", 0)
    return [
        (
            of.needs_all_classes and not (by.finds and of.takes_found),
            f"{objective} needs every class, {proposal} leaves some out; take proposal all, or objective double-sum",
        ),
        (
            not of.excludes_true and not by.distribution,
            f"{objective} is a mean over draws from one distribution, {proposal} has some classes for certain; "
            "take its tail alone, or objective sampled-softmax",
        ),
        (
            of.uses_log_q and by.adaptive,
            f"{objective} learns a contrast with its proposal, {proposal} changes with the weights; "
            "take uniform, frequency or tree",
        ),
        (
            of.n_auxiliary and by.finds,
            f"{objective} keeps a variable per sample that follows the sum over all classes, {proposal} finds those "
            "that score highest only; take objective hinge or sampled-softmax",
        ),
        missing_offer(method),
        (
            n_joint > n_head,
            f"{objective} has n_joint {n_joint:g}, {proposal} is sure to look at {n_head} classes; "
            f"take proposal head with n_head: {n_joint:g} or more, or proposal all",
        ),
        (
            method.batch.shared and (by.adaptive or differs_by_row(by)),
            f"batch is shared, {proposal} draws differently for each sample; leave shared out, or take uniform or "
            "frequency",
        ),
        (
            method.batch.shared and method.batch.size == 1,
            "batch is shared, but of size 1; set its size to 2 or more",
        ),
        not_word_by_word(method, batch=method.batch.size > 1),
        *rules_of_shrinkage(method),
        (
            method.l2 and not of.excludes_true,
            f"l2 is {method.l2:g}, but draws of {objective}, a mean under {proposal}, say nothing of how often "
            f"a class is touched; set l2: 0 and decay: {method.l2:g}, or its regularizer if it has one",
        ),
        (
            method.l2 and by.finds,
            f"l2 is {method.l2:g}, but what {proposal} finds says nothing of how often a class is touched; set "
            f"l2: 0 and decay: {method.l2:g}, or take a proposal that draws",
        ),
        (
            method.l2 and method.average != "none",
            f"average is {method.average}, but where {proposal} leaves classes out, weights with an L2 penalty "
            f"shrink when they are touched, which no average follows; set l2: 0 and decay: {method.l2:g}, or leave "
            "one of them out",
        ),
        (
            method.bias_start != "zero" and not (by.distribution and method.bias and not by.adaptive),
            f"bias_start is {method.bias_start}, which needs biases and a proposal with probabilities that stay; "
            "leave it out",
        ),
    ]


def rules_of_minibatches(method: Any, takers: str) -> list[tuple[Any, str]]:
    """What no method can be made of that takes minibatches over all classes; ``takers`` name optimizers for these."""
    proposal, optimizer = named(method)[1:]
    return [
        not_excluding(method),
        (
            method.optimizer.needs != "gradient" or method.optimizer.fade < 1,
            f"{optimizer} takes single steps, {proposal} gives minibatches; take {takers}",
        ),
        missing_offer(method),
        *rules_of_all_classes(method),
    ]


def rules_of_all_classes(method: Any) -> list[tuple[Any, str]]:
    """What no method that looks at every class can be made of."""
    objective, proposal, _ = named(method)
    return [
        (
            method.objective.draws_numbers,
            f"{objective} draws random numbers, which {proposal} does not pass on; take proposal uniform",
        ),
        (
            method.weights != "dense",
            f"weights are sparse, and {proposal} moves every class, after which none of them is zero; take weights: "
            "dense, or a proposal that draws",
        ),
        (
            method.batch.size > 1,
            f"batch has size {method.batch.size}, {proposal} has its own; set batch_size of {proposal}",
        ),
        (
            method.batch.shared,
            "batch is shared, but of size 1; set its size to 2 or more",
        ),
        not_word_by_word(method, batch=True),
        *rules_of_shrinkage(method),
        (
            method.bias_start != "zero",
            f"bias_start is {method.bias_start}, which needs biases and a proposal with probabilities; leave it out",
        ),
    ]


def is_softmax(method: Any) -> bool:
    """Tell whether a method is exact softmax: that is what precisions are for."""
    return not method.proposal.draws and method.settings["objective"]["name"] == "softmax"


def rules_of_devices(method: Any) -> list[tuple[Any, str]]:
    """What no method can be made of that asks something of a device: a precision, or bits that may differ."""
    objective, proposal, _ = named(method)
    asked = method.precision != SINGLE
    return [
        (
            not method.deterministic and method.device == NUMBA,
            f"deterministic is false, which is for devices of PyTorch, and device is {NUMBA}; take device cuda or "
            "auto, or leave deterministic out",
        ),
        (
            asked and method.device == NUMBA,
            f"precision is {method.precision}, and device {NUMBA}, compiled code, has {SINGLE} only; take device "
            "cuda, or leave precision out",
        ),
        (
            asked and not is_softmax(method),
            f"precision is {method.precision}, and {objective} with {proposal} has {SINGLE} only; take objective "
            "softmax and proposal all, or leave precision out",
        ),
        (
            asked and method.encoder is not None,
            f"precision is {method.precision}, and a table of an encoder has {SINGLE} only; leave one of them out",
        ),
    ]


def rules_of_label_sets(method: Any, place: str) -> list[tuple[Any, str]]:
    """What no method can be made of that trains on rows with several labels, at a place such as "numba"."""
    objective, proposal, optimizer = named(method)
    needs, draws = method.optimizer.needs, method.proposal.draws
    joint = needs == "proximal" and (method.n_sampled > 1 or method.l2)
    return [
        (
            draws and (method.batch.size > 1 or method.batch.shared),
            f"batch has size {method.batch.size}; {proposal} draws for each row by itself; leave batch out, or take "
            "proposal all",
        ),
        (
            joint,
            f"{optimizer} solves its step for one drawn class, without an L2 penalty; set n_sampled: 1 and l2: 0",
        ),
        (
            getattr(method.objective, "n_joint", 0),
            f"{objective} has joint classes, among which labels would be; take objective one-vs-each",
        ),
        (
            place != NUMBA and not (method.objective.takes_sets and method.objective.sums_exponentials and not draws),
            f"{objective} with {proposal} meets them by compiled code only, and device is {place}; leave device out, "
            "or take objective softmax and proposal all",
        ),
    ]


def differs_by_row(proposal: Any) -> bool:
    """Whether a proposal, or one that it is made of, draws differently for each sample."""
    return any(part.by_row for part in parts_of(proposal))


def indexes_dense_rows(proposal: Any) -> bool:
    """Whether a proposal, or one that it is made of, keeps an index of rows of weights."""
    return any(part.indexes for part in parts_of(proposal))
