"""What all rules share: the experiment that the config asks for, where its files are, and the jobs' environment."""

import hashlib
import json
import os
import sys
from functools import cache
from tempfile import NamedTemporaryFile

from xsoftmax.commands import verbs
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.fingerprint import fingerprint, modules_below, source_of
from xsoftmax.internal.registry import modules_of, stem
from xsoftmax.internal.shipped import methods_file
from xsoftmax.lab.workflow import experiment
from xsoftmax.lab.workflow.experiment import PLANNED, Experiment
from xsoftmax.lab.workflow.places import check_places
from xsoftmax.methods import merged


def placed(path):
    """Where a path of this workflow is: another place if a module statement has `prefix` or `replace_prefix`."""
    return workflow.modifier.path_modifier.replace_prefix(path)


try:
    EXPERIMENT = Experiment.from_config(config)
    PLACE = hashlib.sha256(placed(EXPERIMENT.results).encode()).hexdigest()[:16]
    EXPERIMENT.check_unchanged(os.environ, f"{PLANNED}_{PLACE}")
    check_places(EXPERIMENT.name, placed)
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
FITS = EXPERIMENT.fit_folders(RESULTS)
SEARCH = f"{RESULTS}/{experiment.SEARCH}"
SEARCHES = EXPERIMENT.search_folders(RESULTS)
TRIAL = f"{SEARCH}/{{point}}"
TRIAL_FILES = [
    f"{TRIAL}/{file}".format(**trial._asdict())
    for trial in EXPERIMENT.trials()
    for file in ("history.csv", "status.json")
]
SCRATCH = placed(f"scratch/{EXPERIMENT.name}")
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
CONFIG = NamedTemporaryFile("w", prefix="xsoftmax-", suffix=".json", encoding="utf-8")
json.dump(config, CONFIG)
CONFIG.flush()

# The interpreter that runs Snakemake is the default one for jobs; an environment of --sdm conda comes before it.
if os.path.dirname(sys.executable) not in os.getenv("PATH", "").split(":"):
    os.environ.update(PATH=f"{os.path.dirname(sys.executable)}:{os.getenv('PATH')}")

# What commands begin with. It is part of each, as a `shell.prefix` or a PYTHONPATH would reach the jobs of whoever uses
# these rules as a module. Places are in variables: in the commands, Snakemake would take another place for an edit.
# Snakemake limits the threads of OpenMP and BLAS to a job's threads, but not numba's.
os.environ.update(
    {
        "XSOFTMAX_METHODS": str(methods_file()),
        "XSOFTMAX_SOURCES": ":".join(
            filter(None, [SOURCES, os.environ.get("PYTHONPATH")])
        ),
        f"XSOFTMAX_CONFIG_{PLACE}": CONFIG.name,
    }
)


def command(words, program="python"):
    """Command of a rule that runs a verb."""
    return (
        'NUMBA_NUM_THREADS=$OMP_NUM_THREADS PYTHONPATH="$XSOFTMAX_SOURCES"'
        f" {program} -m xsoftmax {words}"
    )


# The network by which ranks talk: a resource, so that a profile may name it; what the environment says comes first.
NETWORK = " ".join(
    f"{name}_SOCKET_IFNAME=${{{{{name}_SOCKET_IFNAME-{{params.network}}}}}}"
    for name in ("GLOO", "NCCL")
)


def network_of(wildcards, resources):
    """Network of a job, if its resources, which who uses a rule may replace as a whole, name one."""
    return getattr(resources, "network", "")


def planning(words):
    """Command of a rule that writes down what the config comes to; its words begin with what of it."""
    what, _, others = words.partition(" ")
    return (
        f'{PLANNED}=${PLANNED}_{PLACE} PYTHONPATH="$XSOFTMAX_SOURCES"'
        f' python -m xsoftmax.lab.workflow.plan {what} "$XSOFTMAX_CONFIG_{PLACE}" {others}'
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


def page_parts():
    """Hash of what the report's page is made of that is no Python."""
    folder = source_of("xsoftmax.lab.report.page").parent
    files = [
        path
        for path in sorted(folder.iterdir())
        if path.suffix in (".css", ".html", ".js")
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[
        :16
    ]


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


def spread(wildcards):
    """What a fit by several processes asks of SLURM: tasks and GPUs in all, or of each node if the config has nodes."""
    ranks, nodes, cards = ranks_of(wildcards), EXPERIMENT.n_nodes, gpus(wildcards)
    each = ranks // nodes if nodes else 0
    return {
        "nodes": nodes,
        "tasks": (
            0 if each > 1 else ranks
        ),  # a task for each node is the least that there can be
        "tasks_per_node": each if each > 1 else 0,
        "gpu": 0 if nodes else cards,
        "gres": f"gpu:{each}" if nodes and cards else "",
    }


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
    return local(ancient(str(EXPERIMENT.datasets[wildcards.dataset].file)))


def local_files(wildcards):
    """Files of the user's own that a data set is made of, which are here whatever stores the rest."""
    return [local(file) for file in EXPERIMENT.datasets[wildcards.dataset].local_files]


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
    budget = task_of(wildcards).trial_budget_of(wildcards.method)
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
