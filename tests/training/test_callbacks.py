"""Callbacks of a fit: what is told when, what they may do, and that none that fails loses a fit."""

import csv
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

from faults.programs import N_CLASSES, clustered, train
from forked import run
from training.interruptions import KillAfter, KilledError
from training.problems import K, curve, method, rows
from xsoftmax.internal.errors import InputError, StoppedError
from xsoftmax.solvers import sampled
from xsoftmax.training.callbacks import Callback
from xsoftmax.training.callbacks.judge import Judge
from xsoftmax.training.callbacks.live_history import LiveHistory
from xsoftmax.training.callbacks.show_progress import ShowProgress
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import FitState, Plan

HOOKS = ("begin", "advanced", "evaluated", "end")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(sampled, "DEFAULT_CHUNK", 100)


@pytest.fixture
def data(dataset):
    return dataset(*rows(500), K, n_validation=50, n_test=50)


class Notes(Callback):
    """Note what is told, and where the fit is then."""

    def __init__(self):
        self.told = []

    def begin(self, fit):
        self.told.append(("begin", fit.state.step, len(fit.state.history)))

    def advanced(self, fit):
        self.told.append(("advanced", fit.state.step, len(fit.state.history)))

    def evaluated(self, fit, row):
        assert row == fit.state.history[-1]
        assert np.isfinite(fit.state.best)  # it has been judged
        self.told.append(("evaluated", row["step"], len(fit.state.history)))

    def end(self, fit):
        self.told.append(("end", fit.state.step, fit.state.status))


def test_what_is_told_in_which_order(data):
    notes = Notes()
    fit(data, method(), 0, Plan(epochs=1, at=(0.5,)), callbacks=[notes])
    assert notes.told == [
        ("begin", 0, 0),
        ("evaluated", 0, 1),
        ("advanced", 100, 1),
        ("evaluated", 200, 2),
        ("advanced", 200, 2),
        ("advanced", 300, 2),
        ("evaluated", 400, 3),
        ("advanced", 400, 3),
        ("end", 400, "finished"),
    ]


def test_callbacks_do_not_change_a_fit(data, tmp_path):
    plan = Plan(epochs=2, at=(0.5, 1.0))
    plain = fit(data, method(), 0, plan)
    watched = fit(data, method(), 0, plan, callbacks=[Notes(), ShowProgress(), LiveHistory(tmp_path / "live.csv")])
    assert np.array_equal(plain.model.rows, watched.model.rows)
    assert curve(plain) == curve(watched)


def test_a_fit_is_silent_unless_it_is_shown(data, capsys):
    fit(data, method(), 0, Plan(epochs=1))
    assert capsys.readouterr() == ("", "")
    fit(data, method(), 0, Plan(epochs=1), callbacks=[ShowProgress()])
    out, err = capsys.readouterr()
    assert not out
    assert "synthetic mine seed 0: compiled in" in err
    assert "epoch 1, trained for" in err
    assert "steps/s" in err


def test_what_a_callback_sees(data):
    class Evaluation(Callback):
        def evaluated(self, fit, row):
            self.seen = (fit.name, fit.dataset, fit.seed, fit.epochs, fit.spent, fit.converged, fit.resumed)
            model, test = fit.model(), data.split("test")
            self.accuracy = np.mean(np.argmax(test.X @ model.W.T + model.b, axis=1) == test.y)
            self.shape, self.rate = fit.weights().shape, fit.rate

    evaluation = Evaluation()
    history = fit(data, method(), 0, Plan(epochs=1), callbacks=[evaluation]).state.history
    assert evaluation.seen == ("synthetic mine seed 0", "synthetic", 0, 1.0, 1.0, False, False)
    assert evaluation.accuracy == pytest.approx(history[-1]["test_accuracy"])
    assert evaluation.shape[0] == K
    assert evaluation.rate == history[-1]["learning_rate"]


@pytest.mark.parametrize("hook", HOOKS[:3])
def test_a_callback_may_stop_a_fit(hook, data):
    """What it leaves is evaluated: the model's weights are those of a row of the history."""

    class Stop(Callback):
        def __init__(self):
            setattr(self, hook, self.stop)

        def stop(self, fit, row=None):
            if hook == "begin" or fit.state.step:
                fit.stop("stopped early", "enough")
                fit.stop("finished", "too late to be heard")

    result = fit(data, method(), 0, Plan(epochs=3, at=(0.5,), keep="last"), callbacks=[Stop()])
    assert (result.state.status, result.state.message) == ("stopped early", "enough")
    assert result.state.step == {"begin": 0, "advanced": 100, "evaluated": 200}[hook]
    assert result.state.history[-1]["step"] == result.state.step
    assert result.kept == {"epoch": result.state.step / 400, "by": "last"}


def test_a_status_that_is_none_is_a_mistake_of_the_callback(data, capsys):
    class Stop(Callback):
        def begin(self, fit):
            fit.stop("done", "")

    assert fit(data, method(), 0, Plan(epochs=1), callbacks=[Stop()]).state.status == "finished"
    assert "callback Stop: status of a fit is 'done'; known: finished, stopped early" in capsys.readouterr().err


@pytest.mark.fault(
    "a callback that fails: a disk that is full, a server that is gone, a mistake in its code",
    happens="it is told nothing more, others are, and the fit ends with the same bits",
    user="`warning: callback …: …; training goes on without it`, once",
)
@pytest.mark.parametrize("hook", [*HOOKS, "arrays", "restore"])
def test_a_callback_that_fails_loses_no_fit(hook, data, capsys, tmp_path):
    class Failing(Callback):
        def __init__(self):
            self.calls = 0
            setattr(self, hook, self.fail)

        def arrays(self):
            return {"n": np.array(1)}

        def fail(self, *arguments):
            self.calls += 1
            raise OSError(28, "No space left on device")

    plan, kept = {"epochs": 2, "at": (1.0,)}, {"checkpoint": tmp_path / "kept.h5", "checkpoint_seconds": 0.0}
    failing, notes, plain = Failing(), Notes(), fit(data, method(), 0, Plan(**plan))
    if hook == "restore":
        with pytest.raises(KilledError):
            fit(data, method(), 0, Plan(**plan, **kept), callbacks=[failing, KillAfter(3)])
    result = fit(data, method(), 0, Plan(**plan, **kept), callbacks=[failing, notes])
    assert np.array_equal(result.model.rows, plain.model.rows)
    assert curve(result) == curve(plain)
    said = "warning: callback Failing: No space left on device; make room on the disk and run it again; training goes"
    assert capsys.readouterr().err.count(said) == failing.calls == 1
    assert notes.told[-1] == ("end", 800, "finished")


@pytest.mark.parametrize("error", [KilledError, KeyboardInterrupt, StoppedError])
def test_what_ends_a_program_ends_a_fit_and_tells_callbacks_of_the_end(error, data):
    class Ending(Callback):
        def advanced(self, fit):
            raise error

    notes = Notes()
    with pytest.raises(error):
        fit(data, method(), 0, Plan(epochs=1), callbacks=[Ending(), notes])
    assert notes.told[-1] == ("end", 100, "running")


class Average(Callback):
    """Average the weights of all chunks."""

    def __init__(self, scale=1.0):
        self.n, self.total, self.scale = 0, np.zeros((K, 13)), scale

    def advanced(self, fit):
        self.n, self.total = self.n + 1, self.total + self.scale * fit.weights()

    def arrays(self):
        return {"n": np.array(self.n), "total": self.total}

    def restore(self, arrays):
        self.n, self.total = int(arrays["n"]), arrays["total"]


def test_what_a_callback_keeps_is_resumed(data, tmp_path):
    """Of two of a class, each has its own."""
    plan, kept = {"epochs": 2}, {"checkpoint": tmp_path / "kept.h5", "checkpoint_seconds": 0.0}
    whole, killed, resumed = ([Average(), Average(2.0)] for _ in range(3))
    fit(data, method(), 0, Plan(**plan), callbacks=whole)
    with pytest.raises(KilledError):
        fit(data, method(), 0, Plan(**plan, **kept), callbacks=[*killed, KillAfter(4)])
    fit(data, method(), 0, Plan(**plan, **kept), callbacks=resumed)
    for one, other in zip(whole, resumed, strict=True):
        assert (one.n, other.n) == (8, 8)
        assert np.array_equal(one.total, other.total)


@pytest.mark.parametrize(("before", "after"), [([Average], []), ([], [Average])])
def test_other_callbacks_after_a_resume(before, after, data, tmp_path, capsys):
    """The checkpoint is taken: it is the fit's."""
    plan, kept = {"epochs": 2}, {"checkpoint": tmp_path / "kept.h5", "checkpoint_seconds": 0.0}
    whole, notes = fit(data, method(), 0, Plan(**plan)), Notes()
    with pytest.raises(KilledError):
        fit(data, method(), 0, Plan(**plan, **kept), callbacks=[*(make() for make in before), KillAfter(4)])
    resumed = fit(data, method(), 0, Plan(**plan, **kept), callbacks=[*(make() for make in after), notes])
    assert notes.told[0] == ("begin", 300, 1)
    assert np.array_equal(whole.model.rows, resumed.model.rows)
    assert not capsys.readouterr().err


def test_arrays_that_no_checkpoint_keeps(data, tmp_path, capsys):
    class Words(Callback):
        def arrays(self):
            return {"words": np.array(["a", "b"], object)}

    plan = Plan(epochs=1, checkpoint=tmp_path / "kept.h5", checkpoint_seconds=0.0)
    assert fit(data, method(), 0, plan, callbacks=[Words()]).state.status == "finished"
    assert "callback Words: TypeError: a checkpoint keeps numbers" in capsys.readouterr().err


def test_killed_between_an_evaluation_and_its_checkpoint(data, tmp_path):
    """What is evaluated once more is counted once: early stopping, the best weights, the curve."""

    class KillAtEvaluation(Callback):
        def __init__(self, number):
            self.number = number

        def evaluated(self, fit, row):
            if len(fit.state.history) == self.number:
                raise KilledError

    plan = {"epochs": 40, "at": tuple(np.arange(0.25, 40, 0.25)), "patience": 2}
    chosen = method("softmax", "all", {"name": "adagrad", "learning_rate": 2.0})
    whole = fit(data, chosen, 0, Plan(**plan))
    assert whole.state.status == "stopped early"
    n_rows, path = len(whole.state.history), tmp_path / "kept.h5"
    for number in (n_rows // 2, n_rows - 1, n_rows):
        with pytest.raises(KilledError):
            fit(
                data,
                chosen,
                0,
                Plan(**plan, checkpoint=path, checkpoint_seconds=0.0),
                callbacks=[KillAtEvaluation(number)],
            )
    resumed = fit(data, chosen, 0, Plan(**plan, checkpoint=path))
    assert np.array_equal(resumed.model.rows, whole.model.rows)
    assert curve(resumed) == curve(whole)
    assert (resumed.state.message, resumed.kept) == (whole.state.message, whole.kept)


@pytest.mark.parametrize(("column", "sign"), [("validation_log_likelihood", 1), ("train_accuracy", 1)])
def test_a_value_is_better_only_if_it_is_above(column, sign):
    judge, state = Judge(column), FitState()
    running = SimpleNamespace(state=state)
    assert judge.sign == sign
    with pytest.raises(InputError, match=f"{column} is nan, which cannot judge weights; take another --by"):
        judge.evaluated(running, {"epoch": 0.0, column: np.nan})
    verdicts = []
    for epoch, value in enumerate([-2.0, -1.0, -1.0, np.nan, -0.5]):
        judge.evaluated(running, {"epoch": float(epoch), column: value})
        verdicts.append((state.best, state.best_epoch, state.without_gain))
    assert verdicts == [(-2.0, 0, 0), (-1.0, 1, 0), (-1.0, 1, 1), (-1.0, 1, 2), (-0.5, 4, 0)]


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_a_live_history_has_each_row_as_it_comes(data, tmp_path):
    path, seen = tmp_path / "folder" / "live.csv", []

    class Follow(Callback):
        def evaluated(self, fit, row):
            assert path.read_text().endswith("\n")
            seen.append([float(found["epoch"]) for found in read(path)])

    result = fit(data, method(), 0, Plan(epochs=2, at=(1.0,)), callbacks=[LiveHistory(path), Follow()])
    assert seen == [[0.0], [0.0, 1.0], [0.0, 1.0, 2.0]]
    assert [float(row["objective"]) for row in read(path)] == [row["objective"] for row in result.state.history]


def test_a_live_history_is_in_the_end_the_history(prepare, tmp_path):
    data, live = prepare(*clustered(600), N_CLASSES, n_validation=50), tmp_path / "live.csv"
    done = run(train(data, tmp_path, "negative", "--epochs", 2, "--points", 4, "--live", live))
    assert done.returncode == 0, done.stderr
    assert live.read_bytes() == (tmp_path / "fit" / "history.csv").read_bytes()
    done = run(train(data, tmp_path, "negative", "--epochs", 1, "--live", data))
    assert done.returncode == 1
    assert "--live" in done.stderr
    assert "is also what is read" in done.stderr


def test_a_resumed_fit_has_each_row_once_in_its_live_history(data, tmp_path):
    live, kept = tmp_path / "live.csv", {"checkpoint": tmp_path / "kept.h5", "checkpoint_seconds": 0.0}
    plan = Plan(epochs=2, at=(0.5, 1.0, 1.5), **kept)
    with pytest.raises(KilledError):
        fit(data, method(), 0, plan, callbacks=[LiveHistory(live), KillAfter(6)])  # its row is not in the checkpoint
    assert [float(row["epoch"]) for row in read(live)] == [0.0, 0.5, 1.0, 1.5]
    result = fit(data, method(), 0, plan, callbacks=[LiveHistory(live)])
    assert [float(row["seconds"]) for row in read(live)] == [row["seconds"] for row in result.state.history]


def test_a_log_that_is_gone_loses_no_fit(prepare, tmp_path):
    """Whoever read standard error has ended."""
    words = train(prepare(*clustered(600), N_CLASSES), tmp_path, "negative", "--epochs", 2)
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as program:
        program.stderr.close()
        assert program.wait(60) == 0
    assert (tmp_path / "fit" / "status.json").exists()
