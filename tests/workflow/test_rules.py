"""What runs, and what runs again after a change."""

import json
import re
import subprocess
import sys
import sysconfig

import pytest
import yaml

from workflow.checkout import REPOSITORY, Checkout

AFTERWARDS = {"compare": 1, "track": 1, "report": 1}


def test_the_default_config_gives_the_expected_jobs(checkout):
    assert checkout.jobs(config="config/config.yaml") == {
        "download": 1, "prepare": 1, "proposal": 1, "proposals": 1, "train": 7, "evaluate": 7, "plan": 1, "fits": 1,
        **AFTERWARDS,
    }  # fmt: skip


def test_seeds_multiply_the_fits_and_methods_share_the_tree(checkout):
    with checkout.edited_yaml(
        "tiny.yaml", lambda config: config.update(seeds=[0, 1, 2], methods=["adversarial"], set={})
    ):
        jobs = checkout.jobs()
    assert (jobs["train"], jobs["evaluate"], jobs["proposal"]) == (3, 3, 1)


def test_no_tree_is_made_that_no_method_draws_from(checkout):
    assert "proposal" not in checkout.jobs("--config", "methods=[softmax, one-vs-each]")


def test_the_slurm_profile_is_found_by_name(checkout):
    assert checkout.jobs("--profile", "slurm")["train"] == 3


def test_rules_are_linted_and_formatted(checkout):
    for command in (["snakemake", "--lint"], ["snakefmt", "--check", "Snakefile", "workflow"]):
        done = checkout.run(*command)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_rule_says_what_it_needs_and_where_it_writes_about_itself():
    for file in sorted((REPOSITORY / "workflow" / "rules").glob("*.smk")):
        for rule in re.split(r"^rule ", file.read_text(), flags=re.MULTILINE)[1:]:
            for part in ("log:", "benchmark:", "conda:", "threads:", "mem_mb=", "runtime=", "message:"):
                assert part in rule, f"{rule.split(':')[0]}: {part}"


def test_the_run_leaves_a_report_logs_and_benchmarks(finished):
    assert (finished.folder / "results/tiny/report.html").stat().st_size > 10_000
    for kind in ("logs/tiny/train", "benchmarks/tiny/train"):
        assert len(list((finished.folder / kind).rglob("seed-0.*"))) == 3


def test_a_method_that_diverges_does_not_stop_the_others(finished):
    fits = finished.folder / "results/tiny/fits/digits"
    status = {path.parts[-3]: json.loads(path.read_text())["status"] for path in fits.rglob("status.json")}
    assert status == {"softmax": "finished", "adversarial": "finished", "one-vs-each": "diverged"}


def test_a_second_run_does_nothing(finished):
    assert "Nothing to be done" in finished.snakemake()


@pytest.mark.slow  # tests/lab/test_tracking.py tries the verb by itself
def test_a_server_out_of_reach_fails_nothing_and_one_rule_logs_later(finished, tmp_path):
    tree = Checkout(tmp_path, finished.folder)
    nobody = tree.run(
        "snakemake", "--configfile", "tiny.yaml", "--cores", "1", "--forcerun", "track",
        MLFLOW_TRACKING_URI="http://127.0.0.1:9",
    )  # fmt: skip
    assert nobody.returncode == 0, nobody.stderr
    assert "warning: 3 fits are not logged" in nobody.stdout + nobody.stderr
    tree.snakemake("--forcerun", "track")
    tracking = json.loads((tree.folder / "results/tiny/tracking.json").read_text())
    assert len(tracking["logged"]) == 3
    assert not tracking["pending"]


@pytest.mark.slow
def test_fits_log_to_a_server_as_they_go(finished, tmp_path):
    tree = Checkout(tmp_path, finished.folder)
    fit = "results/tiny/fits/digits/softmax/seed-0/model.h5"
    words = ("snakemake", fit, "--configfile", "tiny.yaml", "--cores", "1", "--forcerun", "train")
    assert tree.run(*words, MLFLOW_TRACKING_URI="http://127.0.0.1:9").returncode == 0
    log = tree.folder / "logs/tiny/train/digits/softmax/seed-0.log"
    assert "warning: callback LiveRun: http://127.0.0.1:9" in log.read_text()


@pytest.mark.long_cases
@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("lab/report/page/winner.py", {"report": 1}),
        ("lab/report/figures.py", {"compare": 1, "report": 1}),
        ("commands/evaluate.py", {"evaluate": 3, **AFTERWARDS}),
        ("objectives/one_vs_each.py", {"train": 1, "evaluate": 1, **AFTERWARDS}),
        ("commands/train.py", {"train": 3, "evaluate": 3, **AFTERWARDS}),
        ("tree/fit.py", {"proposal": 1, "proposals": 1, "train": 1, "evaluate": 1, **AFTERWARDS}),
        (
            "data/readers/table.py",
            {"prepare": 1, "proposal": 1, "proposals": 1, "train": 3, "evaluate": 3, **AFTERWARDS},
        ),
        ("data/readers/svmlight.py", {}),
        ("data/download.py", {}),
        ("cli.py", {}),
    ],
)
def test_a_code_edit_reruns_what_depends_on_it(finished, module, expected):
    text = (finished.folder / "src/xsoftmax" / module).read_text()
    with finished.rewritten(f"src/xsoftmax/{module}", text + "\nEDITED = True\n"):
        assert finished.jobs() == expected


@pytest.mark.long_cases
@pytest.mark.parametrize("module", ["training/fit.py", "kernels/rows.py", "commands/evaluate.py", "tree/fit.py"])
def test_a_comment_and_a_sentence_of_a_docstring_rerun_nothing(finished, module):
    text = (finished.folder / "src/xsoftmax" / module).read_text()
    assert text.startswith('"""')
    with finished.rewritten(f"src/xsoftmax/{module}", '"""An edit. ' + text[3:] + "\n# A comment.\n"):
        assert finished.jobs() == {}


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("tiny.yaml", "epochs: 1", "epochs: 2", {"train": 3, "evaluate": 3, "plan": 1, **AFTERWARDS}),
        ("tiny.yaml", "1.0e+38", "1.0e+37", {"train": 1, "evaluate": 1, "plan": 1, **AFTERWARDS}),
        ("config/datasets/digits.yaml", "title:", "title: our", {}),
    ],
)
def test_a_config_edit_reruns_what_depends_on_it(finished, file, old, new, expected):
    with finished.edited(file, old, new):
        assert finished.jobs() == expected


def test_a_changed_learning_rate_retrains_one_method(finished):
    with finished.edited_yaml("config/methods.yaml", lambda methods: set_rate(methods["adversarial"], 0.02)):
        assert finished.jobs() == {"plan": 1, "train": 1, "evaluate": 1, **AFTERWARDS}
    with finished.edited_yaml("config/methods.yaml", lambda methods: methods["adversarial"].update(source="?")):
        assert finished.jobs() == {}


def test_a_changed_tree_rebuilds_it_for_the_methods_that_draw_from_it(finished):
    with finished.edited_yaml(
        "config/methods.yaml", lambda methods: methods["adversarial"]["proposal"].update(dimension=4)
    ):
        assert finished.jobs() == {"proposal": 1, "proposals": 1, "train": 1, "evaluate": 1, "plan": 1, **AFTERWARDS}


@pytest.mark.slow
def test_an_edit_in_a_folder_of_own_data_prepares_it_again(checkout):
    texts = checkout.folder / "own" / "texts"
    for k in range(20):
        file = texts / f"class-{k % 2}" / f"{k}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"the rows of text number {k}\n")
    (texts.parent / "mine.yaml").write_text("{name: mine, format: folders, files: [{path: texts}]}")
    config = "experiment: own\ndatasets: [own/mine.yaml]\nmethods: [softmax]\nbudget: {epochs: 1}\n"
    (checkout.folder / "own.yaml").write_text(config)
    checkout.snakemake("data/prepared/mine.h5", config="own.yaml")
    assert checkout.jobs("data/prepared/mine.h5", config="own.yaml") == {}
    with checkout.edited("own/texts/class-0/0.txt", "rows", "lines"):
        assert checkout.jobs("data/prepared/mine.h5", config="own.yaml") == {"download": 1, "prepare": 1}
    (texts / "class-0" / "2.txt").unlink()
    assert checkout.jobs("data/prepared/mine.h5", config="own.yaml") == {"download": 1, "prepare": 1}


@pytest.mark.slow
def test_memory_is_limited_where_it_is_enforced(checkout):
    model = "results/tiny/fits/digits/softmax/seed-0/model.h5"
    command = ["snakemake", model, "--configfile", "tiny.yaml", "--cores", "1", "--set-resources", "train:mem_mb=1"]
    refused = checkout.run(*command, SLURM_JOB_ID="1")
    assert refused.returncode == 1
    assert "it may take 1 MB" in refused.stdout + refused.stderr
    done = checkout.run(*command)
    assert done.returncode == 0, done.stderr


def set_rate(method, rate):
    method["optimizer"]["learning_rate"] = rate


def test_the_documentation_tells_what_jobs_ask_for():
    rules = "\n".join(path.read_text() for path in (REPOSITORY / "workflow" / "rules").glob("*.smk"))
    asked = {
        rule: [int(re.search(rf'{what}\("{rule}", (\d+)\)', rules)[1]) for what in ("minutes", "memory")]
        for rule in ("prepare", "proposal", "train", "evaluate", "trial", "compare", "report")
    }
    lines = re.findall(
        r"^\| `(\w+)` \| ([\d,]+) \| ([\d,]+) \|$", (REPOSITORY / "docs/cluster.md").read_text(), re.MULTILINE
    )
    assert {rule: [int(number.replace(",", "")) for number in numbers] for rule, *numbers in lines} == asked


@pytest.mark.slow
@pytest.mark.fault(
    "a checkout, or an interpreter, in a folder whose name has spaces, quotes, `$()` or letters of any script",
    happens="every path is one word to the shell",
    user="nothing",
)
def test_a_folder_may_have_any_name(tmp_path):
    """The working tree's, and that of the interpreter which jobs run with; Snakemake itself cannot do with braces."""
    odd = tmp_path / """a "b" 'c' $(touch sprung) é汉"""
    odd.mkdir()
    tree = Checkout(odd)
    own = odd / "own venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(own)], check=True)
    (packages,) = own.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    config = yaml.safe_load((tree.folder / "tiny.yaml").read_text()) | {"set": {}}
    grid = {"softmax": {"optimizer.learning_rate": [0.1, 1.0]}}
    (tree.folder / "tiny.yaml").write_text(yaml.safe_dump(config | {"search": {"grid": grid}}))
    words = [str(own / "bin" / "python"), "-m", "snakemake", "--configfile", "tiny.yaml", "--cores", "2"]
    done = tree.run(*words, PATH="/usr/bin:/bin")
    assert done.returncode == 0, done.stderr
    assert (tree.folder / "results/tiny/report.html").exists()
    assert json.loads((tree.folder / "results/tiny/search/digits/softmax/chosen.json").read_text())["trials"]
    assert not list(tmp_path.rglob("sprung"))
    assert "Nothing to be done" in tree.run(*words, PATH="/usr/bin:/bin").stderr


@pytest.mark.slow
def test_long_texts_are_no_command_line(tmp_path):
    """Of fits that are more than 128 KB, and of a config that is."""
    tree = Checkout(tmp_path)
    config = yaml.safe_load((tree.folder / "tiny.yaml").read_text()) | {"seeds": list(range(30_000))}
    (tree.folder / "many.yaml").write_text(yaml.safe_dump(config | {"methods": ["softmax"], "set": {}}))
    words = ("--allowed-rules", "fits", "plan", "--", "results/tiny/fits.txt", "results/tiny/config.yaml")
    tree.snakemake(*words, config="many.yaml")
    lines = (tree.folder / "results/tiny/fits.txt").read_text().splitlines()
    assert len(lines) == 30_000
    assert lines[-1] == "results/tiny/fits/digits/softmax/seed-29999"
    assert yaml.safe_load((tree.folder / "results/tiny/config.yaml").read_text())["seeds"][-1] == 29_999


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"budgett": {"epochs": 1}}, "error: config: unknown key 'budgett'; known: experiment, "),
        ({"budgett": {"epochs": 1}}, "did you mean 'budget'?"),
        (
            {"budget": {"epoch": 1}},
            "error: config: budget: unknown key 'epoch'; known: epochs, seconds; did you mean",
        ),
        ({"methods": ["sofmax"]}, "error: config: methods: unknown method 'sofmax'; known: "),
        ({"methods": ["sofmax"]}, "did you mean 'softmax'?"),
        ({"datasets": ["digit"]}, "did you mean 'digits'?"),
    ],
)
def test_an_error_in_a_config_is_a_line_with_the_near_miss(change, said, checkout):
    tree = checkout
    config = yaml.safe_load((tree.folder / "tiny.yaml").read_text())
    (tree.folder / "wrong.yaml").write_text(yaml.safe_dump(config | {"set": {}} | change))
    done = tree.run("snakemake", "--configfile", "wrong.yaml", "--cores", "1", "--dry-run")
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("error: ")]
