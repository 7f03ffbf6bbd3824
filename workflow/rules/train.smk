"""One job per data set, method and seed.

``mem_mb`` limits a fit where SLURM enforces it; elsewhere a fit may take what the machine has free. More for one rule:
``--set-resources train:mem_mb=16000``.
"""


rule train:
    input:
        data="data/prepared/{dataset}.h5",
        tree=tree_of,
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
        "fit"
    conda:
        "../../envs/compute.yaml"
    threads: EXPERIMENT.config["threads"]
    resources:
        mem_mb=memory(4000),
        runtime=240,
    params:
        folder=FIT,
        checkpoint=f"scratch/{EXPERIMENT.name}/{{dataset}}/{{method}}/seed-{{seed}}.h5",
        seed=lambda wildcards: wildcards.seed,
        tree=lambda wildcards, input: f"--tree {input.tree}" if input.tree else "",
        chosen=lambda wildcards, input: (
            f"--chosen {input.chosen}" if input.chosen else ""
        ),
        settings=lambda wildcards: as_json(
            task_of(wildcards).settings(wildcards.method)
        ),
        like=like_of,
        changes=lambda wildcards: as_json(
            task_of(wildcards).changes.get(wildcards.method, {})
        ),
        options=lambda wildcards: train_options(task_of(wildcards).plan),
        source=lambda wildcards: source(
            "train", *task_of(wildcards).components(wildcards.method)
        ),
    message:
        "train {wildcards.method} on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        "python -m xsoftmax train {input.data} --methods config/methods.yaml --method {wildcards.method} {params.like}"
        " --set {params.changes:q} {params.chosen} {params.tree} --seed {params.seed} {params.options} --threads {threads}"
        " --checkpoint {params.checkpoint} ${{SLURM_JOB_ID:+--memory {resources.mem_mb}}}"
        " -o {params.folder} > {log} 2>&1"
