"""Proposals that are fitted beforehand: one per data set and set of parameters, shared by the methods that draw from it."""


rule proposal:
    input:
        "data/prepared/{dataset}.h5",
    output:
        f"{RESULTS}/proposals/{{dataset}}/{{proposal}}.h5",
    log:
        f"logs/{EXPERIMENT.name}/proposal/{{dataset}}/{{proposal}}.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/proposal/{{dataset}}/{{proposal}}.tsv"
    conda:
        "../../envs/compute.yaml"
    threads: 1
    resources:
        mem_mb=memory("proposal", 4000),
        runtime=minutes("proposal", 120),
    params:
        kind=lambda wildcards: settings_of_proposal(wildcards)["name"],
        parameters=lambda wildcards: as_json(
            {
                key: value
                for key, value in settings_of_proposal(wildcards).items()
                if key != "name"
            }
        ),
        source=lambda wildcards: source(
            "proposal", *proposal_modules(settings_of_proposal(wildcards))
        ),
    message:
        "fit proposal {wildcards.proposal} to {wildcards.dataset}"
    shell:
        command(
            "proposal {input:q} --kind {params.kind:q} --set {params.parameters:q} -o {output:q} > {log:q} 2>&1"
        )


rule proposals:
    input:
        lambda wildcards: expand(
            PROPOSAL,
            dataset=wildcards.dataset,
            proposal=task_of(wildcards).all_proposals,
        ),
    output:
        f"{RESULTS}/proposals/{{dataset}}/complete",
    log:
        f"logs/{EXPERIMENT.name}/proposal/{{dataset}}/complete.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/proposal/{{dataset}}/complete.tsv"
    localrule: True
    conda:
        "../../envs/compute.yaml"
    threads: 1
    resources:
        mem_mb=memory("proposals", 100),
        runtime=minutes("proposals", 5),
    message:
        "all proposals that are fitted beforehand to {wildcards.dataset} are there"
    shell:
        "echo complete > {output:q} 2> {log:q}"
