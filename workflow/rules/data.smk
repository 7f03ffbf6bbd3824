"""From a source to one prepared file."""


# Downloads are pinned by checksum: they follow from the description, whatever code fetched them. So there is no
# hash of the code here; Snakemake would delete the verified files before the job and fetch them again.
rule download:
    input:
        config=description,
        local=local_files,
    output:
        directory("data/raw/{dataset}"),
    log:
        "logs/download/{dataset}.log",
    benchmark:
        "benchmarks/download/{dataset}.tsv"
    localrule: True
    conda:
        "../../envs/compute.yaml"
    threads: 1
    resources:
        mem_mb=memory("download", 2000),
        runtime=minutes("download", 240),
    params:
        sources=lambda wildcards: as_json(
            EXPERIMENT.datasets[wildcards.dataset].sources
        ),
    message:
        "download {wildcards.dataset}"
    shell:
        command("download {input.config:q} -o {output:q} > {log:q} 2>&1")


rule prepare:
    input:
        config=description,
        raw="data/raw/{dataset}",
        local=local_files,
    output:
        "data/prepared/{dataset}.h5",
    log:
        "logs/prepare/{dataset}.log",
    benchmark:
        "benchmarks/prepare/{dataset}.tsv"
    conda:
        "../../envs/compute.yaml"
    threads: 1
    resources:
        mem_mb=memory("prepare", 4000),
        runtime=minutes("prepare", 60),
    params:
        settings=lambda wildcards: as_json(
            EXPERIMENT.datasets[wildcards.dataset].settings
        ),
        source=lambda wildcards: source(
            "prepare", EXPERIMENT.datasets[wildcards.dataset].reader
        ),
    message:
        "prepare {wildcards.dataset}"
    shell:
        command(
            "prepare {input.config:q} --raw {input.raw:q} -o {output:q} > {log:q} 2>&1"
            " && {{ grep '^warning' {log:q} >&2 || true; }}"
        )
