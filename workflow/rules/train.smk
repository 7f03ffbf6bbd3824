"""One job per data set, method and seed.

``mem_mb`` limits a fit where SLURM enforces it; elsewhere a fit may take what the machine has free. The config says how
much, under ``resources``.
"""


rule train:
    input:
        data="data/prepared/{dataset}.h5",
        proposals=proposals_of,
        chosen=chosen_of,
    output:
        model=f"{FIT}/model.h5",
        history=f"{FIT}/history.csv",
        status=f"{FIT}/status.json",
    log:
        f"logs/{EXPERIMENT.name}/train/{{dataset}}/{{method}}/seed-{{seed}}.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/train/{{dataset}}/{{method}}/seed-{{seed}}.tsv"
    group:
        group_of("fit")
    conda:
        "../../envs/compute.yaml"
    threads: EXPERIMENT.config["threads"]
    resources:
        mem_mb=memory("train", 4000),
        runtime=minutes("train", 240),
        gpu=gpus,
        packed=1,
        network="",
    params:
        network=network_of,
        folder=subpath(output.model, parent=True),
        checkpoint=f"{SCRATCH}/{{dataset}}/{{method}}/seed-{{seed}}.h5",
        seed=lambda wildcards: wildcards.seed,
        proposals=lambda wildcards, input: [
            word
            for file in input.get("proposals", [])
            for word in ("--proposal", file)
        ],
        chosen=lambda wildcards, input: (
            ["--chosen", input.chosen] if input.chosen else []
        ),
        settings=lambda wildcards: as_json(
            task_of(wildcards).settings(wildcards.method)
        ),
        like=like_of,
        changes=lambda wildcards: as_json(
            task_of(wildcards).changes.get(wildcards.method, {})
        ),
        options=lambda wildcards: train_options(
            task_of(wildcards).plan_of(wildcards.method)
        )
        + ranks_options(wildcards),
        program=program_of,
        source=lambda wildcards: source(
            "train", *task_of(wildcards).components(wildcards.method)
        ),
    message:
        "train {wildcards.method} on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        command(
            'train {input.data:q} --methods "$XSOFTMAX_METHODS" --method {wildcards.method:q} {params.like:q}'
            " --set {params.changes:q} --expect {params.settings:q} {params.chosen:q} {params.proposals:q} --seed {params.seed}"
            " {params.options:q} --threads {threads} ${{SLURM_JOB_ID:+--memory {resources.mem_mb}}}"
            " --checkpoint {params.checkpoint:q} -o {params.folder:q} > {log:q} 2>&1",
            program=f"{NETWORK} {{params.program}}",
        )


# On SLURM one job of so many tasks, which the command starts itself.
use rule train as train_by_ranks with:
    wildcard_constraints:
        method="|".join(EXPERIMENT.config["ranks"]) or "(?!)",
    resources:
        mem_mb=memory("train", 4000),
        runtime=minutes("train", 240),
        nodes=lambda wildcards: spread(wildcards)["nodes"],
        gpu=lambda wildcards: spread(wildcards)["gpu"],
        gres=lambda wildcards: spread(wildcards)["gres"],
        packed=1,
        network="",
        tasks=lambda wildcards: spread(wildcards)["tasks"],
        tasks_per_node=lambda wildcards: spread(wildcards)["tasks_per_node"],
        tasks_per_gpu=0,
        mpi="srun",


ruleorder: train_by_ranks > train
