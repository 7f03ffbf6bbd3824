"""How often a proposal looks at the weights: every so many steps of an epoch, however calls are cut."""

import numpy as np
import pytest

from gpu.problems import N, method_of, settings_of, solver_for
from training.interruptions import KillAfter, KilledError
from training.problems import K as N_CLASSES
from training.problems import rows
from xsoftmax.data.dataset import Dataset
from xsoftmax.methods import build_method
from xsoftmax.proposals._indexed import Indexed
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

SEARCHES = {
    "clustered-search": {"n_clusters": 3, "budget": 4, "n_sampled": 3, "refresh": 3},
    "decomposed-search": {"n_blocks": 2, "n_clusters": 3, "budget": 4, "n_sampled": 3, "refresh": 3},
}
WHOLE, CUT = [(0, N)], [(0, 4), (4, 12), (12, 16), (16, 44), (44, N)]


def searching(name, **others):
    proposal = {"name": name} | SEARCHES[name]
    batch = {"size": 4}
    return method_of(("max-margin", name, "sgd"), "numba", proposal=proposal, batch=batch, **others)


def refreshes(solver):
    return int(solver.arrays()["index_counts"][0])


def after_calls(method, calls, epochs=2):
    solver = solver_for(method)
    assert solver.chunk == 12
    for epoch in range(epochs):
        for first, stop in calls:
            assert solver.advance(np.arange(first, stop), epoch, first, 0.2) == stop - first
    return solver


@pytest.mark.long_cases
@pytest.mark.parametrize("name", SEARCHES)
def test_an_index_is_made_anew_every_so_many_steps_however_calls_are_cut(name):
    whole, cut = (after_calls(searching(name), calls) for calls in (WHOLE, CUT))
    assert refreshes(whole) == refreshes(cut) == 2 * N // 12
    assert whole.weights().any()
    for key, array in whole.arrays().items():
        assert np.array_equal(array, cut.arrays()[key]), key


def test_what_no_checkpoint_holds_is_made_at_each_call_too(monkeypatch):
    names = ("sampled-softmax", "quadratic-kernel", "sgd")
    settings = settings_of(names, batch={"size": 4})
    method, seen = build_method("mine", settings), []
    solver = solver_for(method)
    monkeypatch.setattr(solver, "_refresh", lambda: seen.append(None))
    solver.chunk = 12
    for first, stop in CUT:
        solver.advance(np.arange(first, stop), 0, first, 0.2)
    assert len(seen) == 7, "at 0, 4, 12, 16, 24, 36 and 44 samples"


@pytest.mark.long_cases
@pytest.mark.parametrize("name", SEARCHES)
def test_a_rate_that_falls_by_steps_does_not_make_it_more_often(name, tmp_path, monkeypatch):
    """Nor less, and a fit that is killed between two rates goes on with the same bits."""
    seen, refresh = [], Indexed.refresh
    monkeypatch.setattr(Indexed, "refresh", lambda self, weights: seen.append(self) or refresh(self, weights))
    X, y = rows()
    data = Dataset.from_arrays(X.astype(np.float32), y, classes=range(N_CLASSES))
    falls = {"name": "power", "scale": 4, "exponent": 1.0}
    found, n_refreshes = [], []
    for schedule in ({"name": "constant"}, falls):
        seen.clear()
        whole = fit(data, searching(name, schedule=schedule), 0, Plan(epochs=2, keep="last"))
        n_refreshes.append(len(seen))
        checkpoint = tmp_path / f"{schedule['name']}.h5"
        plan = Plan(epochs=2, keep="last", checkpoint=checkpoint, checkpoint_seconds=0)
        killed = KillAfter(7)
        with pytest.raises(KilledError):
            fit(data, searching(name, schedule=schedule), 0, plan, callbacks=[killed])
        again = fit(data, searching(name, schedule=schedule), 0, plan)
        assert np.array_equal(again.model.W, whole.model.W)
        found.append(whole)
    assert n_refreshes == [1 + 2 * -(-len(y) // 12)] * 2, "one more as code is compiled"
    assert not np.array_equal(found[0].model.W, found[1].model.W)
