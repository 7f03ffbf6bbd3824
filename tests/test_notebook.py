import base64
from importlib.util import find_spec
from pathlib import Path

import nbclient
import nbformat
import pytest

from lab.report.fake_fits import write_fits
from xsoftmax.lab.report.compare import compare

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
QUICKSTART, PAPERS = ROOT / "notebooks/quickstart.ipynb", ROOT / "notebooks/five-papers.ipynb"
FIGURES_OF_PAPERS = 7
FIVE = ("titsias2016", "fagan2018", "ruiz2018", "yen2018", "bamler2020")
FINISHED = sorted(path.parent for path in ROOT.glob("results/*/report.html") if not (path.parent / "paper").exists())


def run(results, monkeypatch, notebook=QUICKSTART, kind="png"):
    """Run a notebook on a folder of results, or without any, and give its pictures."""
    monkeypatch.setenv("XSOFTMAX_RESULTS", "" if results is None else str(results))
    notebook = nbformat.read(notebook, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    data = [output.get("data", {}) for output in outputs]
    if kind == "svg":
        return [each["image/svg+xml"] for each in data if "image/svg+xml" in each]
    return [base64.b64decode(each["image/png"]) for each in data if "image/png" in each]


def test_it_runs_on_results(tmp_path, monkeypatch):
    compare(write_fits(tmp_path, seeds=(0, 1), diverged=(("icd10", "u-max", 0),)), tmp_path)
    pictures = run(tmp_path, monkeypatch)
    assert len(pictures) == 5
    assert len(set(pictures)) == 5


@pytest.mark.results
def test_it_runs_on_real_results(monkeypatch):
    assert FINISHED, "no experiment has been run here; `make run` first"
    for results in FINISHED:
        assert len(run(results, monkeypatch)) == 5


@pytest.mark.results
def test_the_five_papers_are_told_from_real_results(monkeypatch):
    """On reduced runs, too: `make papers QUICK=1`."""
    if missing := [paper for paper in FIVE if not list(ROOT.glob(f"results/{paper}*/paper"))]:
        pytest.skip(f"no results of {', '.join(missing)}: `make papers QUICK=1` brings them")
    pictures = run(ROOT / "results", monkeypatch, PAPERS)
    assert len(pictures) == len(set(pictures)) == FIGURES_OF_PAPERS


def test_the_five_papers_are_told_from_their_pages(monkeypatch):
    pictures = run(None, monkeypatch, PAPERS, "svg")
    assert len(pictures) == len(set(pictures)) == FIGURES_OF_PAPERS


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("simple_icd_10_cm"), reason="no data: pip install 'xsoftmax[data]' brings them")
@pytest.mark.parametrize(("name", "n_figures"), [("which-method", 2), ("text-to-19000-classes", 4)])
def test_those_that_train_run_on_real_data(name, n_figures, tmp_path, monkeypatch):
    """They download, prepare and train in an empty folder, as for a newcomer."""
    monkeypatch.setenv("XSOFTMAX_NOTEBOOK_DATA", str(tmp_path))
    pictures = run(tmp_path, monkeypatch, ROOT / "notebooks" / f"{name}.ipynb")
    assert len(pictures) == len(set(pictures)) == n_figures
    assert list(tmp_path.rglob("model.h5"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_outputs_are_committed(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)
