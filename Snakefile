"""From data sources to one report: `snakemake --cores all`, or `make run` on a machine with nothing set up."""


include: "workflow/Snakefile"


workflow.default_target = "all"  # an included file has none
