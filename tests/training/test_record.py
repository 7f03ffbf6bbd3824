"""What is written of a fit."""

import subprocess

from xsoftmax.training.record import git_commit


def git(*words):
    said = ["git", "-c", "user.name=test", "-c", "user.email=test", *words]
    return subprocess.run(said, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_tells_of_edits_but_not_of_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert git_commit() is None
    names = ("code.py", "results/curves.csv", "dvc.lock")
    (tmp_path / "results").mkdir()
    for name in names:
        (tmp_path / name).write_text("as it was")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "test")
    commit = git("rev-parse", "HEAD")
    assert git_commit() == commit
    for name in names[1:]:
        (tmp_path / name).write_text("renewed by a run")
    assert git_commit() == commit
    monkeypatch.chdir(tmp_path / "results")
    (tmp_path / "code.py").write_text("edited")
    assert git_commit() == f"{commit}+"
