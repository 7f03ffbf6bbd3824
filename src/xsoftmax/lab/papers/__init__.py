"""What papers report, and how ours compares: a module per paper, with the paper's numbers in a YAML file beside it.

A module holds ``tell(results, page, numbers)``: it puts tables, figures and claims with their verdicts on a page, by
what ``xsoftmax.lab.reproduction`` offers. The experiment ``config/experiments/<name>.yaml`` with ``paper: <name>``
makes the results. Another paper is these three files; one that grows long goes on in files that begin with an
underscore.
"""
