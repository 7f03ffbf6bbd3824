"""What all rules share: the experiment that the config asks for, where its files are, and the jobs' environment."""

import json
import os
import shlex
import sys
from functools import cache
from tempfile import NamedTemporaryFile

sys.path[:0] = [f"{workflow.basedir}/src", f"{workflow.basedir}/workflow"]

import experiment
from experiment import Experiment
from places import check_places
from xsoftmax.commands import verbs
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.fingerprint import fingerprint, modules_below
from xsoftmax.internal.registry import modules_of, stem
from xsoftmax.methods import merged

try:
    EXPERIMENT = Experiment.from_config(config)
    EXPERIMENT.check_unchanged(os.environ)
    check_places(EXPERIMENT.name)
except InputError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(1)

RESULTS = EXPERIMENT.results
PROPOSAL = f"{RESULTS}/proposals/{{dataset}}/{{proposal}}.h5"
PROPOSALS = [
    PROPOSAL.format(dataset=name, proposal=proposal)
    for name, task in EXPERIMENT.tasks.items()
    for proposal in task.all_proposals
]
FIT = f"{RESULTS}/{experiment.FIT}"
FITS = EXPERIMENT.fit_folders()
SEARCH = f"{RESULTS}/{experiment.SEARCH}"
SEARCHES = EXPERIMENT.search_folders()
TRIAL = f"{SEARCH}/{{point}}"
FIT_FILES = ["model.h5", "history.csv", "status.json", "metrics.json"]
PAPER = (
    [f"xsoftmax.lab.papers.{stem(EXPERIMENT.config['paper'])}"]
    if EXPERIMENT.config["paper"]
    else []
)

if EXPERIMENT.config["mirror"]:
    os.environ.update(XSOFTMAX_MIRROR=EXPERIMENT.config["mirror"])

# Fits show their curves as they go, where a server can take them from many at once.
if os.getenv("MLFLOW_TRACKING_URI", "").startswith(("http://", "https://")):
    os.environ.setdefault("XSOFTMAX_LIVE_MLFLOW", EXPERIMENT.name)

# What Snakemake read, for jobs on this machine: gone when the program ends, and only its own user's to read.
if "XSOFTMAX_CONFIG" not in os.environ:
    CONFIG = NamedTemporaryFile(
        "w", prefix="xsoftmax-", suffix=".json", encoding="utf-8"
    )
    json.dump(config, CONFIG)
    CONFIG.flush()
    os.environ.update(XSOFTMAX_CONFIG=CONFIG.name)

# The interpreter that runs Snakemake is the default one for jobs; an environment of --sdm conda comes before it.
os.environ.update(PATH=f"{os.path.dirname(sys.executable)}:{os.getenv('PATH')}")

# Snakemake limits the threads of OpenMP and BLAS to a job's threads, but not numba's.
# Braces are doubled, as the prefix is formatted; the folder may have any name.
BASE = shlex.quote(workflow.basedir).replace("{", "{{").replace("}", "}}")
shell.prefix(
    "set -euo pipefail; "
    "export NUMBA_NUM_THREADS=$OMP_NUM_THREADS; "
    f"export XSOFTMAX_WORKFLOW={BASE}/workflow; "
    f"export PYTHONPATH={BASE}/src${{{{PYTHONPATH:+:$PYTHONPATH}}}}; "
)


wildcard_constraints:
    dataset="[^/]+",
    method="[a-z0-9-]+",
    seed="[0-9]+",
    point="[^/]+",
    proposal="[^/]+",


# How scores become probabilities, and what is measured: loaded by name.
LINKS = modules_below("xsoftmax.evaluation.links")
METRICS = modules_below("xsoftmax.evaluation.metrics")
LOADED = {verb: LINKS + METRICS for verb in ("train", "evaluate")}
LOADED |= {verb: METRICS for verb in ("choose", "compare", "report")}


@cache
def source(verb, *components):
    """Hash of the sources behind a verb and the components it loads: a rule reruns when they change."""
    return fingerprint(verbs()[verb], *components, *LOADED.get(verb, []))


def memory(rule, megabytes):
    """Memory of a job, unless the config has another for the rule; a retry gets more."""
    asked = EXPERIMENT.config["resources"].get(rule, {}).get("mem_mb", megabytes)
    return lambda wildcards, attempt: asked * attempt


def minutes(rule, runtime):
    """Minutes that a job may take, unless the config has others for the rule; a retry gets more."""
    asked = EXPERIMENT.config["resources"].get(rule, {}).get("runtime", runtime)
    return lambda wildcards, attempt: asked * attempt


def ranks_of(wildcards):
    """Processes that train a method together."""
    return EXPERIMENT.n_ranks(wildcards.method)


def gpus(wildcards):
    """GPUs of a fit: one for each of its processes if its method says `device: cuda`."""
    return ranks_of(wildcards) * (task_of(wildcards).device(wildcards.method) == "cuda")


def group_of(name):
    """Group of a job that trains: fits on a GPU, or by several processes, are submitted apart from those on a CPU."""
    return (
        lambda wildcards: name
        + "-gpu" * (gpus(wildcards) > 0)
        + "-ranks" * (ranks_of(wildcards) > 1)
    )


def program_of(wildcards):
    """What starts the processes of a fit: srun within a job of SLURM, torchrun elsewhere."""
    n = ranks_of(wildcards)
    if n == 1:
        return "python"
    by_slurm = f"srun --ntasks={n} --cpus-per-task=$OMP_NUM_THREADS python"
    by_hand = f"torchrun --standalone --nproc-per-node={n}"
    return f'$([ "${{SLURM_JOB_ID:-}}" ] && echo "{by_slurm}" || echo "{by_hand}")'


def ranks_options(wildcards):
    """Option of the verb `train` that says how many processes there have to be."""
    return ["--ranks", ranks_of(wildcards)] if ranks_of(wildcards) > 1 else []


def description(wildcards):
    """File that describes a data set; what matters in it is in the params, so its date does not."""
    return ancient(str(EXPERIMENT.datasets[wildcards.dataset].file))


def task_of(wildcards):
    """What is asked on a data set."""
    return EXPERIMENT.tasks[wildcards.dataset]


def proposals_of(wildcards):
    """Files of the proposals that a method draws from and that are fitted beforehand."""
    names = task_of(wildcards).proposals(wildcards.method)
    return [PROPOSAL.format(dataset=wildcards.dataset, proposal=name) for name in names]


def proposal_modules(settings):
    """Modules of a proposal and its parts, loaded by name."""
    return modules_of("xsoftmax.proposals", settings)


def settings_of_proposal(wildcards):
    """Name and parameters of a proposal that is fitted beforehand."""
    return task_of(wildcards).all_proposals[wildcards.proposal]


def reference_of(wildcards):
    """Model that a fit is held against, if the config names one: of the same data set and, if trained with it, seed."""
    name = EXPERIMENT.config["reference"]
    if name not in task_of(wildcards).methods:
        return []
    seeds = EXPERIMENT.seeds(wildcards.dataset, name)
    seed = wildcards.seed if int(wildcards.seed) in seeds else seeds[0]
    fit = FIT.format(dataset=wildcards.dataset, method=name, seed=seed)
    return [f"{fit}/model.h5"]


def like_of(wildcards):
    """Option of the verb `train`: the method of the methods file that one of the config's own is like."""
    like = task_of(wildcards).likes.get(wildcards.method)
    return ["--like", like] if like else []


def chosen_of(wildcards):
    """Settings that a search chose for a method, if there was one."""
    searched = wildcards.method in task_of(wildcards).grid
    return [f"{SEARCH.format(**wildcards)}/chosen.json"] if searched else []


def train_options(plan):
    """Options of the verb `train` that say how long, and where along the way to evaluate."""
    return [
        str(word)
        for name, value in plan.items()
        for word in (f"--{name}", *(value if isinstance(value, list) else [value]))
    ]


def trial_options(wildcards):
    """How long a trial trains, on which rows, when it is looked at, and its name in the search."""
    search = task_of(wildcards).search
    budget = search.get("budget", task_of(wildcards).budget)
    plan = budget | {"points": search.get("points", 1)}
    evaluate = task_of(wildcards).evaluate
    plan |= {key: evaluate[key] for key in ("rows", "keep", "by") if key in evaluate}
    share = {"share": search["share"]} if "share" in search else {}
    return train_options({**plan, **share, "trial": wildcards.point})


def point_of(wildcards):
    """What a trial changes of its method's settings."""
    task = task_of(wildcards)
    return merged(
        task.changes.get(wildcards.method, {}),
        task.grid[wildcards.method][wildcards.point],
    )


def measure_options():
    """What the verb `evaluate` measures beside exact likelihoods of validation and test rows."""
    measure = EXPERIMENT.config["measure"]
    kinds = measure.get("as_published", [])
    train = ["--train"] if measure.get("train") else []
    return [*train, *(["--as-published", *kinds] if kinds else [])]


def trials_of(wildcards, file):
    """Files of all trials of a search."""
    points = task_of(wildcards).grid[wildcards.method]
    return [f"{TRIAL}/{file}".format(**wildcards, point=point) for point in points]


def as_json(value):
    """Text of a parameter: it is kept to see changes, and quoted for the shell."""
    return json.dumps(value, sort_keys=True, default=str)
