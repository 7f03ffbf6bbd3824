"""Settings of methods that the config searches: a short fit for every point of a grid, and the best one's settings.

Trials are jobs like fits: they run side by side, resume, and only those are run that are not there yet.
"""


use rule train as trial with:
    input:
        data="data/prepared/{dataset}.h5",
        proposals=lambda wildcards: (
            [] if "share" in task_of(wildcards).search else proposals_of(wildcards)
        ),
    output:
        model=temp(f"{TRIAL}/model.h5"),
        history=f"{TRIAL}/history.csv",
        status=f"{TRIAL}/status.json",
    log:
        f"logs/{EXPERIMENT.name}/search/{{dataset}}/{{method}}/{{point}}.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/search/{{dataset}}/{{method}}/{{point}}.tsv"
    group:
        group_of("trial")
    resources:
        mem_mb=memory("trial", 4000),
        runtime=minutes("trial", 30),
        gpu=gpus,
        packed=1,
        network="",
    params:
        network=network_of,
        folder=subpath(output.model, parent=True),
        checkpoint=f"{SCRATCH}/search/{{dataset}}/{{method}}/{{point}}.h5",
        seed=lambda wildcards: task_of(wildcards).search.get(
            "seed", task_of(wildcards).seeds[0]
        ),
        proposals=lambda wildcards, input: [
            word
            for file in input.get("proposals", [])
            for word in ("--proposal", file)
        ],
        chosen=[],
        settings=lambda wildcards: as_json(
            task_of(wildcards).settings(wildcards.method, wildcards.point)
        ),
        like=like_of,
        changes=lambda wildcards: as_json(point_of(wildcards)),
        options=trial_options,
        program="python",
        source=lambda wildcards: source(
            "train", *task_of(wildcards).components(wildcards.method)
        ),
    message:
        "try {wildcards.method} on {wildcards.dataset}, {wildcards.point}"


rule grid:
    output:
        grid=f"{SEARCH}/grid.json",
    log:
        f"logs/{EXPERIMENT.name}/search/{{dataset}}/{{method}}-grid.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/search/{{dataset}}/{{method}}-grid.tsv"
    localrule: True
    conda:
        "../../envs/compute.yaml"
    threads: 1
    resources:
        mem_mb=memory("grid", 100),
        runtime=minutes("grid", 5),
    params:
        grid=lambda wildcards: as_json(task_of(wildcards).grid[wildcards.method]),
    message:
        "write down what is tried of {wildcards.method} on {wildcards.dataset}"
    shell:
        planning(
            "grid --of {wildcards.dataset:q} {wildcards.method:q}"
            " -o {output.grid:q} > {log:q} 2>&1"
        )


rule choose:
    input:
        grid=rules.grid.output.grid,
        status=lambda wildcards: trials_of(wildcards, "status.json"),
        history=lambda wildcards: trials_of(wildcards, "history.csv"),
    output:
        f"{SEARCH}/chosen.json",
    log:
        f"logs/{EXPERIMENT.name}/search/{{dataset}}/{{method}}.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/search/{{dataset}}/{{method}}.tsv"
    localrule: True
    conda:
        "../../envs/compute.yaml"
    threads: 1
    resources:
        mem_mb=memory("choose", 500),
        runtime=minutes("choose", 5),
    params:
        by=lambda wildcards: task_of(wildcards).search.get(
            "by", "validation_log_likelihood"
        ),
        folder=subpath(output[0], parent=True),
        source=source("choose"),
    message:
        "choose settings of {wildcards.method} on {wildcards.dataset}"
    shell:
        command(
            "choose {params.folder:q} --grid @{input.grid:q} --by {params.by} -o {output:q} > {log:q} 2>&1"
        )
