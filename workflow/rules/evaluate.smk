"""The exact test metrics of each fit."""


rule evaluate:
    input:
        model=f"{FIT}/model.h5",
        data="data/prepared/{dataset}.h5",
        reference=reference_of,
    output:
        f"{FIT}/metrics.json",
    log:
        f"logs/{EXPERIMENT.name}/evaluate/{{dataset}}/{{method}}/seed-{{seed}}.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/evaluate/{{dataset}}/{{method}}/seed-{{seed}}.tsv"
    # Jobs of one group that depend on one another become one: a reference would join all fits.
    group:
        "evaluate" if EXPERIMENT.config["reference"] else "fit"
    conda:
        "../../envs/compute.yaml"
    threads: EXPERIMENT.config["threads"]
    resources:
        mem_mb=memory(4000),
        runtime=60,
    params:
        source=source("evaluate"),
        reference=lambda wildcards, input: (
            f"--reference {input.reference}" if input.reference else ""
        ),
        measure=measure_options(),
    message:
        "evaluate {wildcards.method} on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        "python -m xsoftmax evaluate {input.model} {input.data} {params.reference} {params.measure} --threads {threads}"
        " -o {output} > {log} 2>&1"
