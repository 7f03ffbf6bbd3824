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
        "evaluate" if EXPERIMENT.config["reference"] else group_of("fit")
    conda:
        "../../envs/compute.yaml"
    threads: EXPERIMENT.config["threads"]
    resources:
        mem_mb=memory("evaluate", 4000),
        runtime=minutes("evaluate", 60),
        packed=1,
    params:
        source=source("evaluate"),
        reference=lambda wildcards, input: (
            ["--reference", input.reference] if input.reference else []
        ),
        measure=measure_options(),
    message:
        "evaluate {wildcards.method} on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        command(
            "evaluate {input.model:q} {input.data:q} {params.reference:q} {params.measure:q}"
            " --threads {threads} -o {output:q} > {log:q} 2>&1"
        )
