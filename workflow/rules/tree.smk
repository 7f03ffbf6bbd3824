"""The auxiliary trees: one per data set and set of parameters, shared by the methods that draw from it."""


rule tree:
    input:
        "data/prepared/{dataset}.h5",
    output:
        f"{RESULTS}/trees/{{dataset}}/dimension-{{dimension}}_regularizer-{{regularizer}}_folds-{{folds}}_resplit-{{resplit}}.h5",
    log:
        f"logs/{EXPERIMENT.name}/tree/{{dataset}}/dimension-{{dimension}}_regularizer-{{regularizer}}_folds-{{folds}}_resplit-{{resplit}}.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/tree/{{dataset}}/dimension-{{dimension}}_regularizer-{{regularizer}}_folds-{{folds}}_resplit-{{resplit}}.tsv"
    conda:
        "../../envs/compute.yaml"
    threads: 1
    resources:
        mem_mb=memory("tree", 4000),
        runtime=minutes("tree", 120),
    params:
        resplit=lambda wildcards: (
            [] if wildcards.resplit == "true" else ["--no-resplit"]
        ),
        source=source("tree"),
    message:
        "fit tree {wildcards.dimension}, {wildcards.regularizer}, {wildcards.folds}, {wildcards.resplit} on {wildcards.dataset}"
    shell:
        "python -m xsoftmax tree {input:q} --dimension {wildcards.dimension:q}"
        " --regularizer {wildcards.regularizer:q} --folds {wildcards.folds:q} {params.resplit:q} -o {output:q} > {log:q} 2>&1"


rule trees:
    input:
        lambda wildcards: expand(
            TREE, dataset=wildcards.dataset, tree=task_of(wildcards).trees
        ),
    output:
        f"{RESULTS}/trees/{{dataset}}/complete",
    log:
        f"logs/{EXPERIMENT.name}/tree/{{dataset}}/complete.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/tree/{{dataset}}/complete.tsv"
    localrule: True
    conda:
        "../../envs/compute.yaml"
    threads: 1
    resources:
        mem_mb=memory("trees", 100),
        runtime=minutes("trees", 5),
    message:
        "all trees for {wildcards.dataset} are there"
    shell:
        "echo complete > {output:q} 2> {log:q}"
