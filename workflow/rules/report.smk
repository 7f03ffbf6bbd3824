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
        mem_mb=memory("plan", 100),
        runtime=minutes("plan", 5),
    params:
        config=as_json(EXPERIMENT.shown_config),
        plan=as_json(EXPERIMENT.plan()),
    message:
        "write down the config"
    shell:
        " && ".join(
            [
                planning("config -o {output.config:q} > {log:q} 2>&1"),
                planning("plan -o {output.plan:q} >> {log:q} 2>&1"),
            ]
        )


rule fits:
    output:
        fits=f"{RESULTS}/fits.txt",
    log:
        f"logs/{EXPERIMENT.name}/fits.log",
    benchmark:
        f"benchmarks/{EXPERIMENT.name}/fits.tsv"
    localrule: True
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=memory("fits", 100),
        runtime=minutes("fits", 5),
    params:
        fits=EXPERIMENT.arguments(RESULTS),
    message:
        "list the fits"
    shell:
        planning("fits -o {output.fits:q} > {log:q} 2>&1")


rule compare:
    input:
        fits=rules.fits.output.fits,
        history=expand("{fit}/history.csv", fit=FITS),
        status=expand("{fit}/status.json", fit=FITS),
        metrics=expand("{fit}/metrics.json", fit=FITS),
        chosen=expand("{search}/chosen.json", search=SEARCHES),
        trials=TRIAL_FILES,
    output:
        summary=report(
            f"{RESULTS}/summary.csv",
            caption="../report/fits.rst",
            category="Tables",
            labels={"table": "every fit, CSV"},
        ),
        table=f"{RESULTS}/summary.md",
        ranking=report(
            f"{RESULTS}/summary.html",
            caption="../report/ranking.rst",
            category="Ranking",
            labels={"table": "the methods, by their fits"},
        ),
        curves=report(
            f"{RESULTS}/curves.csv",
            caption="../report/curves.rst",
            category="Tables",
            labels={"table": "every evaluation, CSV"},
        ),
        fits=f"{RESULTS}/fits.json",
        searches=f"{RESULTS}/searches.json",
        figures=report(
            directory(f"{RESULTS}/figures"),
            patterns=["{data}_{measure}_by_{axis}.svg"],
            caption="../report/figures.rst",
            category="Curves",
            subcategory="{data}",
            labels={"measure": "{measure}", "against": "{axis}"},
        ),
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
        mem_mb=memory("compare", 2000),
        runtime=minutes("compare", 30),
    params:
        folder=subpath(output.summary, parent=True),
        reference=(
            ["--reference", EXPERIMENT.config["reference"]]
            if EXPERIMENT.config["reference"]
            else []
        ),
        source=source("compare"),
    message:
        "compare the fits: tables and figures"
    shell:
        command(
            "compare @{input.fits:q} {params.reference:q} -o {params.folder:q} > {log:q} 2>&1"
        )


rule track:
    input:
        fits=rules.fits.output.fits,
        model=expand("{fit}/model.h5", fit=FITS),
        history=expand("{fit}/history.csv", fit=FITS),
        status=expand("{fit}/status.json", fit=FITS),
        metrics=expand("{fit}/metrics.json", fit=FITS),
        chosen=expand("{search}/chosen.json", search=SEARCHES),
        trials=TRIAL_FILES,
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
        mem_mb=memory("track", 2000),
        runtime=minutes("track", 60),
    params:
        experiment=EXPERIMENT.name,
        source=source("track"),
    message:
        "log the fits to MLflow"
    shell:
        command(
            "track @{input.fits:q} --experiment {params.experiment:q} -o {output:q} > {log:q} 2>&1"
            " && {{ grep '^warning' {log:q} >&2 || true; }}"
        )


rule report:
    input:
        rules.compare.output,
        config=rules.plan.output.config,
        tracking=rules.track.output,
        proposals=expand(  # so that all that dvc.yaml names is there, and can be recorded
            f"{RESULTS}/proposals/{{dataset}}/complete", dataset=EXPERIMENT.tasks
        ),
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
        mem_mb=memory("report", 2000),
        runtime=minutes("report", 30),
    params:
        folder=subpath(output[0], parent=True),
        source=source("report"),
        parts=page_parts(),
    message:
        "write the report"
    shell:
        command(
            "report {params.folder:q} --config {input.config:q} -o {output:q} > {log:q} 2>&1"
        )


rule paper:
    input:
        fits=rules.fits.output.fits,
        summary=rules.compare.output.summary,
        made=expand("{fit}/{file}", fit=FITS, file=FIT_FILES),
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
        mem_mb=memory("paper", 4000),
        runtime=minutes("paper", 30),
    params:
        paper=EXPERIMENT.config["paper"],
        experiment=EXPERIMENT.name,
        source=source("paper", *PAPER),
    message:
        "hold the results against the paper"
    shell:
        command(
            "paper @{input.fits:q} --paper {params.paper:q} --experiment {params.experiment:q}"
            " --data {input.data:q} -o {output.folder:q} > {log:q} 2>&1"
        )
