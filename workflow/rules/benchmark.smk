"""Ours beside other programs: one job with all cores, whose runs are one at a time.

`snakemake --cores all --configfile config/experiments/benchmark.yaml` runs it with the budget of that file;
`make benchmark MINUTES=...` scales it. Runs that are done are kept in its folder; remove that to begin anew.
"""


rule peers:
    input:
        peers=EXPERIMENT.config["peers"] or [],
    output:
        f"{RESULTS}/peers.json",
    log:
        f"logs/{EXPERIMENT.name}/peers.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/peers.tsv"
    conda:
        "../../envs/compute.yaml"
    threads: 64  # as many as there are; on SLURM `--set-threads peers=8`, or what a node has
    resources:
        mem_mb=memory("peers", 16000),
        runtime=minutes("peers", 480),
    params:
        experiment=as_json(EXPERIMENT.shown_config),
        folder=subpath(output[0], parent=True),
        source=source("benchmark", "xsoftmax.lab.benchmark.peers"),
    message:
        "run peers and ours in turn"
    shell:
        command(
            "benchmark peers --experiment <(echo {params.experiment:q}) --peers {input.peers:q}"
            " -o {params.folder:q}/peers --json {output:q} 2>&1 | tee {log:q}"
        )
