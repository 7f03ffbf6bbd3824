"""From a source to one prepared file."""


rule download:
    input:
        lambda wildcards: ancient(str(EXPERIMENT.dataset_files[wildcards.dataset])),
    output:
        directory("data/raw/{dataset}"),
    log:
        "logs/download/{dataset}.log",
    benchmark:
        "benchmarks/download/{dataset}.tsv"
    localrule: True
    conda:
        "../../envs/compute.yaml"
    resources:
        mem_mb=memory(2000),
        runtime=240,
    params:
        settings=lambda wildcards: json.dumps(
            EXPERIMENT.dataset(wildcards.dataset), sort_keys=True
        ),
    shell:
        "python -m xsoftmax download {input} -o {output}"
        ' ${{XSOFTMAX_MIRROR:+--mirror "$XSOFTMAX_MIRROR"}} > {log} 2>&1'


rule prepare:
    input:
        config=lambda wildcards: ancient(
            str(EXPERIMENT.dataset_files[wildcards.dataset])
        ),
        raw="data/raw/{dataset}",
    output:
        "data/prepared/{dataset}.h5",
    log:
        "logs/prepare/{dataset}.log",
    benchmark:
        "benchmarks/prepare/{dataset}.tsv"
    conda:
        "../../envs/compute.yaml"
    resources:
        mem_mb=memory(4000),
        runtime=60,
    params:
        settings=lambda wildcards: json.dumps(
            EXPERIMENT.dataset(wildcards.dataset), sort_keys=True
        ),
        source=source("prepare"),
    shell:
        "python -m xsoftmax prepare {input.config} --raw {input.raw} -o {output} > {log} 2>&1"
