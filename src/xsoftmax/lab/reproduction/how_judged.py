"""The rules of verdicts in words, for the page that introduces the papers' pages."""

from xsoftmax.lab.reproduction.estimates import LEVEL, Estimate
from xsoftmax.lab.reproduction.results import MOST_ROWS
from xsoftmax.lab.reproduction.rules import NUMBERS, ORDERS, Verdict, judge_level


def how_claims_are_judged() -> str:
    """Write the rules as a list in Markdown."""
    level = judge_level(Estimate(0.0, 1.0, 3), at_least=10, near=2).rule
    verdicts = ", ".join(f"*{verdict}*" for verdict in Verdict)
    rules = {
        "Orders": f"Of methods that are compared, {ORDERS}. One fit, whose error is not known, gives no order.",
        "Test rows": "Two methods' accuracies or likelihoods on the same test rows are compared in pairs, row by "
        f"row, on {MOST_ROWS:,} rows at most. The {100 * LEVEL:g} % interval is of other rows and of other seeds "
        "together. All other intervals are of seeds, by Student's t; fits that converge to an optimum have none.",
        "Numbers": f"Where the paper prints numbers, {NUMBERS}.",
        "Levels": "Words such as *much faster* are given a level, which stands at the top of the page's code with "
        f"its reason. With the level 10 and 2 for the shape, {level}.",
        "Not tested": "A claim that nothing here can test says so, and why.",
        "Ours": "Claims of our own are judged by the same rules. They have a table of their own on each page, and a "
        "column of their own above.",
    }
    return "\n".join(
        [
            f"A verdict is one of {verdicts}. Each comes from one of these rules, which are code "
            "([rules.py](../../src/xsoftmax/lab/reproduction/rules.py)) and were written down before the runs that "
            "they judge, except where a page's last column says that a rule was written after; earlier runs, with "
            "other grids, budgets or seeds, were known when they took their form. Beside each verdict stand the "
            "rule, how much it rests on, and which outcome would have changed it.",
            "",
            *(f"- **{name}.** {text}" for name, text in rules.items()),
        ]
    )
