"""The exact test metrics of each fit."""


rule evaluate:
    input:
        model=f"{FIT}/model.h5",
        data="data/prepared/{dataset}.h5",
    output:
        f"{FIT}/metrics.json",
    log:
        f"logs/{EXPERIMENT.name}/evaluate/{{dataset}}/{{method}}/seed-{{seed}}.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/evaluate/{{dataset}}/{{method}}/seed-{{seed}}.tsv"
    group:
        "fit"
    conda:
        "../../envs/compute.yaml"
    threads: 1
    resources:
        mem_mb=memory(4000),
        runtime=60,
    params:
        source=source("evaluate"),
    message:
        "evaluate {wildcards.method} on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        "python -m xsoftmax evaluate {input.model} {input.data} -o {output} > {log} 2>&1"
