"""From data sources to one report: `snakemake --cores all`, or `make run` on a machine with nothing set up."""

import sys

if not workflow.overwrite_configfiles:
    try:  # Snakemake ends in a traceback; a file of --configfile it reads before this
        with open("config/config.yaml", encoding="utf-8") as _file:
            _file.read()
    except UnicodeDecodeError:
        sys.exit("error: config/config.yaml: not UTF-8; save it as UTF-8")

    configfile: "config/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/proposal.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/search.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/benchmark.smk"


localrules:
    all,


rule all:
    input:
        (
            f"{RESULTS}/peers.json"
            if EXPERIMENT.config["peers"]
            else [
                f"{RESULTS}/report.html",
                f"{RESULTS}/tracking.json",
                *expand("{fit}/{file}", fit=FITS, file=FIT_FILES),
                *PROPOSALS,
                *([f"{RESULTS}/paper"] if PAPER else []),
            ]
        ),


onstart:
    from inputs import check_inputs  # not for a dry run, which has no time for it

    check_inputs(workflow.dag.needrun_jobs(), EXPERIMENT.datasets)


onsuccess:
    if (
        os.path.exists(f"{RESULTS}/report.html") and "MAKELEVEL" not in os.environ
    ):  # make says it itself
        print(f"report:    {RESULTS}/report.html")
        if PAPER:
            print(f"the paper: {RESULTS}/paper/{EXPERIMENT.config['paper']}.md")
        print("MLflow UI: `mlflow ui`, then open http://127.0.0.1:5000")
