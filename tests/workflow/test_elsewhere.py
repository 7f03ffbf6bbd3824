"""The workflow used from another folder: by `snakemake -s`, by its own small test, and as another one's module."""

import json
import re
import shutil
import subprocess
import tomllib

import pytest
import yaml

from workflow.checkout import REPOSITORY

INSTALLED = REPOSITORY / "src"  # as if the package were installed, of the version that is tested
ONE = {"experiment": "one", "datasets": ["digits"], "methods": ["softmax", "adversarial"], "budget": {"epochs": 1}}
TWO = {"experiment": "two", "datasets": ["digits"], "methods": ["u-max"], "budget": {"epochs": 2}, "seeds": [0, 1, 2]}
HOST = """\
rule everything:
    input: "one/results/one/report.html", "results/two/report.html", "host.txt"

rule host:
    output: "host.txt"
    shell: "echo ${{PYTHONPATH:-none}} > {output}"

"""
MODULE = """\
module {config[experiment]}:
    snakefile: {snakefile}
    config: {config}
    {prefix}

use rule * from {config[experiment]} as {config[experiment]}_*

"""


@pytest.fixture
def elsewhere(checkout, tmp_path):
    """Run Snakemake in an empty folder, which is no checkout, without a PYTHONPATH."""

    def run(*words, PYTHONPATH="", **environment):
        home = checkout.folder
        try:
            checkout.folder = tmp_path
            return checkout.run("snakemake", "--cores", "2", *words, PYTHONPATH=str(PYTHONPATH), **environment)
        finally:
            checkout.folder = home

    return run


@pytest.fixture
def hosted(checkout, tmp_path):
    """A workflow of someone else's that uses ours twice, once with a prefix."""
    snakefile = repr(str(checkout.folder / "workflow/Snakefile"))
    modules = [
        MODULE.format(snakefile=snakefile, config=ONE, prefix="prefix: 'one'"),
        MODULE.format(snakefile=snakefile, config=TWO, prefix=""),
    ]
    (tmp_path / "Snakefile").write_text(HOST + "".join(modules))
    return tmp_path


def counts(printed):
    """Jobs by rule, as Snakemake tells them."""
    table = re.search(r"^Job stats:\n.*\n-.*\n((?:.+\n)+)", printed, re.MULTILINE)[1]
    return {rule: int(count) for rule, count in (line.split() for line in table.splitlines())}


@pytest.mark.slow
def test_two_modules_have_configs_and_places_of_their_own(hosted, elsewhere):
    done = elsewhere("-n")
    assert done.returncode == 0, done.stderr
    jobs = counts(done.stdout + done.stderr)
    assert {name: jobs.get(name) for name in ("everything", "host", "one_train", "one_proposal", "two_train")} == {
        "everything": 1, "host": 1, "one_train": 2, "one_proposal": 1, "two_train": 3,
    }  # fmt: skip
    assert "two_proposal" not in jobs
    done = elsewhere("one/results/one/fits.txt", "results/two/fits.txt", "host.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    fits = (hosted / "one/results/one/fits.txt").read_text().splitlines()
    assert fits == [f"one/results/one/fits/digits/{method}/seed-0" for method in ONE["methods"]]
    assert len((hosted / "results/two/fits.txt").read_text().splitlines()) == 3
    assert (hosted / "host.txt").read_text().split() == ["none"], "nothing of ours is in other rules' commands"


def test_a_module_may_be_given_other_resources(hosted, elsewhere):
    """Snakemake replaces all of a rule's own by them."""
    rule = "use rule train from two as two_train with:\n    resources: mem_mb=9000\n"
    with (hosted / "Snakefile").open("a") as file:
        file.write(rule)
    done = elsewhere("-n", "-p", "results/two/report.html")
    assert done.returncode == 0, done.stderr
    assert "--memory 9000" in done.stdout + done.stderr
    assert "GLOO_SOCKET_IFNAME=${GLOO_SOCKET_IFNAME-}" in done.stdout + done.stderr


@pytest.mark.slow
def test_a_module_trains_and_reports(hosted, elsewhere):
    done = elsewhere()
    assert done.returncode == 0, done.stdout + done.stderr
    for results in ("one/results/one", "results/two"):
        assert (hosted / results / "report.html").stat().st_size > 10_000
        assert not json.loads((hosted / results / "tracking.json").read_text())["pending"]
    assert "Nothing to be done" in elsewhere().stderr


def test_a_module_from_a_git_repository_needs_no_checkout_beside_it(checkout, elsewhere, tmp_path):
    """As tools of the catalog write it, with an address of a host; here the repository is a folder."""
    if not (checkout.folder / ".git").exists():
        for words in (
            ["init", "-q"],
            ["add", "-A"],
            ["-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "a"],
        ):
            assert checkout.run("git", *words).returncode == 0
    commit = checkout.run("git", "rev-parse", "HEAD").stdout.strip()
    address = f"gitfile({str(checkout.folder)!r}, path='workflow/Snakefile', commit={commit!r})"
    (tmp_path / "Snakefile").write_text(MODULE.format(snakefile=address, config=TWO, prefix=""))
    done = elsewhere("-n", "two_all", PYTHONPATH=INSTALLED)
    assert done.returncode == 0, done.stderr
    assert counts(done.stdout + done.stderr)["two_train"] == 3


def test_it_runs_from_another_folder_with_the_config_there(checkout, elsewhere, tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text(json.dumps(ONE))
    done = elsewhere("-s", str(checkout.folder / "workflow/Snakefile"), "data/prepared/digits.h5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "data/prepared/digits.h5").exists()
    assert not (checkout.folder / "data").exists()


def test_methods_and_data_sets_of_that_folder_come_before_those_shipped(checkout, elsewhere, tmp_path):
    datasets = tmp_path / "config/datasets"
    datasets.mkdir(parents=True)
    (datasets / "mine.yaml").write_text("{name: mine, format: svmlight, files: [{path: rows.svm}]}")
    (datasets / "rows.svm").write_text("0 1:1\n")
    (tmp_path / "config/methods.yaml").write_text(
        (checkout.folder / "config/methods.yaml").read_text().replace("\nsoftmax:", "\nplain:", 1)
    )
    (tmp_path / "config/config.yaml").write_text(json.dumps(ONE | {"datasets": ["mine"], "methods": ["plain"]}))
    done = elsewhere("-n", "-s", str(checkout.folder / "Snakefile"), "results/one/fits/mine/plain/seed-0/model.h5")
    assert done.returncode == 0, done.stdout + done.stderr


def folder_as_storage(request, tmp_path):
    """Give Snakemake's options, variables of its environment, and a function that tells sizes of what is there."""
    pytest.importorskip("snakemake_storage_plugin_fs", reason="pip install snakemake-storage-plugin-fs")
    if shutil.which("rsync") is None:
        pytest.skip("rsync is not installed: apt-get install rsync")
    store = tmp_path / "store"
    words = ["--default-storage-provider", "fs", "--default-storage-prefix", str(store)]
    return words, {}, lambda: {path.relative_to(store).as_posix(): path.stat().st_size for path in store.rglob("*")}


def s3_as_storage(request, tmp_path):
    """Give the same of a bucket, which Snakemake has to make."""
    s3 = request.getfixturevalue("s3")
    words = ["--default-storage-provider", "s3", "--default-storage-prefix", "s3://my-bucket/xsoftmax"]
    words += ["--storage-s3-endpoint-url", s3.meta.endpoint_url]
    keys = {"SNAKEMAKE_STORAGE_S3_ACCESS_KEY": "key", "SNAKEMAKE_STORAGE_S3_SECRET_KEY": "secret"}

    def stored():
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket="my-bucket")
        found = (entry for page in pages for entry in page["Contents"])
        return {entry["Key"].removeprefix("xsoftmax/"): entry["Size"] for entry in found}

    return words, keys, stored


@pytest.mark.slow
@pytest.mark.parametrize("storage", [folder_as_storage, s3_as_storage])
def test_with_a_storage_all_results_are_there_and_a_second_run_does_nothing(
    storage, request, checkout, elsewhere, tmp_path
):
    options, keys, stored = storage(request, tmp_path)
    (tmp_path / "mine.yaml").write_text(json.dumps(ONE | {"search": {"grid": {"softmax": {"decay": [0.0, 0.1]}}}}))
    words = ["-s", str(checkout.folder / "workflow/Snakefile"), "--configfile", "mine.yaml", *options]
    done = elsewhere(*words, **keys)
    assert done.returncode == 0, done.stdout + done.stderr
    sizes = stored()
    assert sizes["results/one/report.html"] > 10_000
    assert sizes["results/one/fits/digits/adversarial/seed-0/model.h5"] > 0
    assert any(name.startswith("results/one/figures/") for name in sizes), "a folder is an output, too"
    assert not (tmp_path / "results").exists()
    shutil.rmtree(tmp_path / ".snakemake")  # as on another machine
    assert "Nothing to be done" in elsewhere(*words, **keys).stderr


@pytest.mark.slow
def test_the_small_test_of_the_catalog_runs(checkout):
    done = checkout.run("snakemake", "--cores", "2", "--directory", ".test")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (checkout.folder / ".test/results/test/report.html").exists()
    assert not (checkout.folder / "results/test").exists()


@pytest.mark.parametrize(
    ("words", "text", "said"),
    [
        ([], None, "error: no config/config.yaml in "),
        (["--configfile", "mine.yml"], "{}", "error: --configfile: no file 'mine.yml' in "),
        (["--configfile", "mine.yml"], "{}", "; did you mean 'mine.yaml'?"),
        (["--configfile=mine.yaml"], "a: [1\n", "error: mine.yaml is not YAML: "),
        (["--configfile", "mine.yaml"], "", "error: mine.yaml: has no keys with values; write for example "),
        (["--configfile", "mine.yaml"], "budget: {epochs: 1}", "error: config: 'experiment' is a required property"),
        (["--configfile", "mine.yaml"], json.dumps(ONE | {"budget": 3}), "; for example budget: {epochs: 10}\n"),
    ],
)
def test_a_config_that_is_not_there_or_wrong_is_a_line(words, text, said, checkout, elsewhere, tmp_path):
    if text is not None:
        (tmp_path / "mine.yaml").write_text(text)
    done = elsewhere("-n", "-s", str(checkout.folder / "workflow/Snakefile"), *words, PYTHONPATH=INSTALLED)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("error: ")]) == 1


def test_the_oldest_snakemake_is_the_same_everywhere():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    entry = next(each for each in project["optional-dependencies"]["pipeline"] if each.startswith("snakemake>="))
    asked = re.search(r'^min_version\("(.*?)"\)', (REPOSITORY / "workflow/Snakefile").read_text(), re.MULTILINE)[1]
    assert asked.removesuffix(".0") == entry.removeprefix("snakemake>=")


def test_the_keys_of_a_config_are_listed_in_its_readme():
    schema = yaml.safe_load((REPOSITORY / "workflow/schemas/config.schema.yaml").read_text())
    listed = re.findall(r"^\| `(\w+)` \|", (REPOSITORY / "config/README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(schema["properties"])


def test_the_row_that_the_page_takes_is_the_best_and_not_the_header(tmp_path):
    command = re.search(r'shell: "(sed .*) > \{output\}"', (REPOSITORY / "docs/workflow.md").read_text())[1]
    summary = tmp_path / "summary.csv"
    summary.write_text("dataset,method,rank\ndigits,sgd,10\ndigits,u-max,2\ndigits,softmax,1\n")
    found = subprocess.run(["bash", "-c", command.format(input=summary)], capture_output=True, text=True, check=True)
    assert found.stdout == "digits,softmax,1\n"
