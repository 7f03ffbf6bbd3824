"""Who trains a method: what solvers say of themselves, and how one is chosen."""

from types import ModuleType

import numpy as np
import pytest

from training.problems import K, method, rows
from xsoftmax import solvers
from xsoftmax.data.training_set import TrainingSet
from xsoftmax.gpu import device
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import build_method, merged
from xsoftmax.solvers import Size, make_solver, solver_of
from xsoftmax.solvers.full import FullSolver
from xsoftmax.solvers.implicit import ImplicitSolver
from xsoftmax.solvers.lbfgs import LbfgsSolver
from xsoftmax.solvers.sampled import SampledSolver

DRAWING = {
    "objective": {"name": "one-vs-each"},
    "proposal": {"name": "uniform", "n_sampled": 2},
    "optimizer": {"name": "sgd"},
}
IMPLICIT = merged(
    DRAWING, {"objective": {"name": "double-sum"}, "optimizer": {"name": "implicit"}, "batch": {"size": 4}}
)
FULL = merged(DRAWING, {"objective": {"name": "softmax"}, "proposal": {"name": "all"}})
LBFGS = merged(FULL, {"optimizer": {"name": "lbfgs"}})
SIZE = Size(1000, 50, 20, 20.0)


@pytest.mark.parametrize("name", solvers.names())
def test_every_solver_has_what_a_solver_has(name):
    """Of the protocol nothing is missing, and what it says before it trains is of the right kind."""
    member = registry.load(solvers.FOLDER, name).MEMBER
    promised = {part for part in vars(solvers.Solver) if not part.startswith("_")}
    assert not {part for part in promised if not hasattr(member, part)}
    sparse = merged(DRAWING, {"weights": "sparse"})
    behind = [merged(settings, {"encoder": {"dimension": 3}}) for settings in (DRAWING, FULL)]
    known = [build_method("mine", settings) for settings in (DRAWING, IMPLICIT, FULL, LBFGS, sparse, *behind)]
    taken = [chosen for chosen in known if member.takes(chosen)]
    assert taken
    for chosen in taken:
        assert member.refuses(chosen) == ""
        assert member.copies(chosen) >= (chosen.weights == "dense")
        assert all(size >= 0 for size in member.memory(chosen, SIZE, 1).values())
        assert member.seconds(chosen, SIZE) > 0


class Faster(FullSolver):
    """Trains what FullSolver does, in half the time, on another device too."""

    @staticmethod
    def seconds(method, size):
        return FullSolver.seconds(method, size) / 2


class WithLbfgsOnGpu(LbfgsSolver):
    """Trains elsewhere."""

    devices = ("cuda",)


@pytest.fixture
def with_solver(monkeypatch):
    """A function that adds a solver, as another file of the folder would."""
    names, load = registry.names, registry.load

    def add(name, solver):
        def known(package):
            return [*names(package), name] if package == solvers.FOLDER else names(package)

        def loaded(package, asked):
            if (package, asked) != (solvers.FOLDER, name):
                return load(package, asked)
            module = ModuleType(name)
            module.MEMBER = solver
            return module

        monkeypatch.setattr(registry, "names", known)
        monkeypatch.setattr(registry, "load", loaded)

    return add


@pytest.mark.parametrize(
    ("settings", "expected"),
    [(DRAWING, SampledSolver), (IMPLICIT, ImplicitSolver), (FULL, FullSolver), (LBFGS, LbfgsSolver)],
)
def test_each_kind_of_method_has_its_solver(settings, expected):
    chosen = build_method("mine", settings)
    assert solver_of(chosen) is expected
    assert sum(solver.takes(chosen) for solver in (SampledSolver, ImplicitSolver, FullSolver, LbfgsSolver)) == 1


@pytest.mark.parametrize("settings", [DRAWING, IMPLICIT, FULL, LBFGS])
def test_estimates_grow_with_the_data(settings):
    chosen = build_method("mine", settings)
    solver, larger = solver_of(chosen), SIZE._replace(n_samples=2000, n_classes=100)
    assert solver.copies(chosen) >= 1
    assert 0 < solver.seconds(chosen, SIZE) < solver.seconds(chosen, larger)
    assert 0 < sum(solver.memory(chosen, SIZE, 1).values()) <= sum(solver.memory(chosen, larger, 2).values())


def test_of_two_the_faster_one_trains_unless_told_otherwise(with_solver):
    with_solver("faster", Faster)
    chosen = build_method("mine", FULL)
    assert solver_of(chosen, SIZE) is Faster
    assert solver_of(build_method("mine", FULL | {"solver": "full"}), SIZE) is FullSolver
    X, y = rows()
    data = TrainingSet(np.asarray(X, np.float32), np.asarray(y, np.int32), K)
    assert type(make_solver(chosen, chosen.objective, chosen.proposal.fit(data), data)) is Faster


def test_a_solver_that_does_not_train_a_method_is_refused():
    with pytest.raises(InputError, match="solver full does not train objective one-vs-each, proposal uniform, "):
        build_method("mine", DRAWING | {"solver": "full"})
    with pytest.raises(InputError, match="take solver sampled, or leave it out"):
        build_method("mine", DRAWING | {"solver": "lbfgs"})
    with pytest.raises(InputError, match="solver is 'fulll'; set it to any or encoded or "):
        build_method("mine", FULL | {"solver": "fulll"})


def test_a_device_is_refused_until_a_solver_takes_it(with_solver, monkeypatch):
    with pytest.raises(
        InputError, match=r"device is cuda, where no solver trains objective softmax, .*; leave device"
    ):
        build_method("mine", LBFGS | {"device": "cuda"})
    with_solver("on-gpu", WithLbfgsOnGpu)
    monkeypatch.setattr(device, "require", lambda name, place: None)
    assert solver_of(build_method("mine", LBFGS | {"device": "cuda"})) is WithLbfgsOnGpu
    assert solver_of(build_method("mine", LBFGS)) is LbfgsSolver


def test_a_solver_of_another_device_is_refused():
    with pytest.raises(InputError, match=r"solver full does not train .* on device cpu; take solver torch-full, or"):
        build_method("mine", FULL | {"device": "cpu", "solver": "full"})


def test_rows_are_streamed_only_to_who_takes_them():
    assert [solver.streams for solver in (SampledSolver, ImplicitSolver, FullSolver, LbfgsSolver)] == [True] * 3 + [
        False
    ]
    assert method().solver == solvers.ANY
