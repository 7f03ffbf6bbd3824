"""Tables, figures and the report over all fits, and their runs in MLflow."""


rule plan:
    output:
        config=f"{RESULTS}/config.yaml",
        plan=f"{RESULTS}/plan.json",
    log:
        f"logs/{EXPERIMENT.name}/plan.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/plan.tsv"
    localrule: True
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=memory(100),
        runtime=5,
    params:
        config=yaml.safe_dump(EXPERIMENT.config, sort_keys=False),
        plan=as_json(EXPERIMENT.plan()),
    message:
        "write down the config"
    shell:
        "{{ printf '%s' {params.config:q} > {output.config}; "
        "printf '%s\\n' {params.plan:q} > {output.plan}; }} 2> {log}"


rule compare:
    input:
        history=expand("{fit}/history.csv", fit=FITS),
        status=expand("{fit}/status.json", fit=FITS),
        metrics=expand("{fit}/metrics.json", fit=FITS),
        chosen=expand("{search}/chosen.json", search=SEARCHES),
    output:
        summary=f"{RESULTS}/summary.csv",
        table=f"{RESULTS}/summary.md",
        curves=f"{RESULTS}/curves.csv",
        fits=f"{RESULTS}/fits.json",
        searches=f"{RESULTS}/searches.json",
        figures=directory(f"{RESULTS}/figures"),
    log:
        f"logs/{EXPERIMENT.name}/compare.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/compare.tsv"
    group:
        "report"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=30,
    params:
        fits=FITS,
        searches=searches_option(),
        folder=subpath(output.summary, parent=True),
        reference=(
            f"--reference {EXPERIMENT.config['reference']}"
            if EXPERIMENT.config["reference"]
            else ""
        ),
        source=source("compare"),
    message:
        "compare the fits: tables and figures"
    shell:
        "python -m xsoftmax compare {params.fits} {params.searches} {params.reference} -o {params.folder} > {log} 2>&1"


rule track:
    input:
        model=expand("{fit}/model.h5", fit=FITS),
        history=expand("{fit}/history.csv", fit=FITS),
        status=expand("{fit}/status.json", fit=FITS),
        metrics=expand("{fit}/metrics.json", fit=FITS),
        chosen=expand("{search}/chosen.json", search=SEARCHES),
    output:
        f"{RESULTS}/tracking.json",
    log:
        f"logs/{EXPERIMENT.name}/track.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/track.tsv"
    localrule: True
    conda:
        "../../envs/track.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=60,
    params:
        fits=FITS,
        searches=searches_option(),
        experiment=EXPERIMENT.name,
        source=source("track"),
    message:
        "log the fits to MLflow"
    shell:
        "python -m xsoftmax track {params.fits} {params.searches} --experiment {params.experiment} -o {output} > {log} 2>&1"
        " && {{ grep '^warning' {log} >&2 || true; }}"


rule report:
    input:
        rules.compare.output,
        config=rules.plan.output.config,
        tracking=rules.track.output,
        template="src/xsoftmax/report/page.html",
    output:
        f"{RESULTS}/report.html",
    log:
        f"logs/{EXPERIMENT.name}/report.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/report.tsv"
    group:
        "report"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=30,
    params:
        folder=subpath(output[0], parent=True),
        source=source("report"),
    message:
        "write the report"
    shell:
        "python -m xsoftmax report {params.folder} --config {input.config} -o {output} > {log} 2>&1"


rule paper:
    input:
        summary=rules.compare.output.summary,
        model=expand("{fit}/model.h5", fit=FITS),
        data=expand("data/prepared/{dataset}.h5", dataset=EXPERIMENT.datasets),
    output:
        folder=directory(f"{RESULTS}/paper"),
    log:
        f"logs/{EXPERIMENT.name}/paper.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/paper.tsv"
    conda:
        "../../envs/compute.yaml"
    threads: 1
    resources:
        mem_mb=memory(4000),
        runtime=30,
    params:
        fits=FITS,
        searches=searches_option(),
        paper=EXPERIMENT.config["paper"],
        experiment=EXPERIMENT.name,
        source=source("paper", *PAPER),
    message:
        "hold the results against the paper"
    shell:
        "python -m xsoftmax paper {params.fits} {params.searches} --paper {params.paper} --experiment {params.experiment}"
        " --data {input.data} -o {output.folder} > {log} 2>&1"
