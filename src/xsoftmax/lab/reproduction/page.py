"""The page of a paper: its numbers beside ours, figures, and a verdict for each of its claims."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from xsoftmax.internal.files import write_text
from xsoftmax.lab.report.figures import save
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import NO_RULE, NUMBERS, ORDERS, Finding, Verdict
from xsoftmax.training.folders import commits

# Beside a page's figures: its claims, for ``overview``.
VERDICTS = "verdicts.json"
# Rules that most claims are judged by are told once, and named beside a verdict.
COMMON = {ORDERS: "by *orders*", NUMBERS: "by *numbers*"}
RULES = (
    "A ± behind a mean is its standard error, and half of a 95 % interval where that is said. A fit that converges "
    "to an optimum has no interval and counts as exact. Two rules are common. "
) + " ".join(f"{name.removeprefix('by ')}: {rule}." for rule, name in COMMON.items())
# What the last column says of a claim, or of a rule, that came up as results were known.
AFTER = "this rule was written after the run that it judges"
MEANWHILE = "this rule was written while the fits ran, with an earlier run known"
COMMAND = "make run CONFIG=config/experiments/{name}.yaml"


@dataclass(frozen=True)
class Claim:
    """Something that a paper says, or we do, in our words; what was found here, and why it differs if it does."""

    says: str
    here: str
    finding: Finding
    why: str = ""
    ours: bool = False

    def told(self) -> dict[str, Any]:
        """Give it as one flat mapping, its finding's fields among the others."""
        return {"says": self.says, "here": self.here, **asdict(self.finding), "why": self.why, "ours": self.ours}


@dataclass
class Page:
    """A page that grows; ``markdown`` and ``write`` give it out."""

    name: str
    title: str
    citation: str
    results: Results
    command: str = COMMAND
    parts: list[str] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)

    def section(self, title: str, *paragraphs: str) -> None:
        """Begin a section."""
        self.parts += [f"## {title}", *paragraphs]

    def text(self, *paragraphs: str) -> None:
        """Add paragraphs."""
        self.parts += paragraphs

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Add a table; columns but the first are numbers."""
        rule = ["---", *["--:"] * (len(headings) - 1)]
        self.parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows)))

    def figure(self, name: str, figure: Figure, caption: str) -> None:
        """Add a figure; its file is called ``<name>.svg``."""
        self.figures[name] = figure
        self.parts.append(f"![{caption}]({self.name}/{name}.svg)\n\n*{caption}*")

    def claim(self, says: str, here: str, finding: Finding, why: str = "", ours: bool = False) -> None:
        """Add a claim of the paper, or one of ours, and what a rule says of it; see ``rules``."""
        self.claims.append(Claim(says, here, finding, why, ours))

    def markdown(self) -> str:
        """Give the whole page."""
        head = [
            f"# {self.title}",
            f"{self.citation}.",
            f"Made by `{self.command.format(name=self.name)}` from {_what_was_run(self.results)}. Tables, "
            "figures and verdicts are computed; texts name settings and sizes. The paper's numbers are in "
            f"[src/xsoftmax/lab/papers/{self.name}.yaml](../../src/xsoftmax/lab/papers/{self.name}.yaml).",
        ]
        return "\n\n".join([*head, *self._verdicts(), *self.parts]) + "\n"

    def _verdicts(self) -> list[str]:
        if not self.claims:
            return []
        parts = ["## Verdicts", f"{_written(self.claims)} {RULES}"]
        for heading, ours in (("the paper says", False), ("we say", True)):
            claims = [claim for claim in self.claims if claim.ours == ours]
            rows = [
                f"| {c.says} | {c.here} | **{c.finding.verdict}** | {_judged(c.finding)} | {c.why} |" for c in claims
            ]
            head = [f"| {heading} | here | verdict | judged by | why |", "| --- | --- | --- | --- | --- |"]
            parts += ["\n".join([*head, *rows])] if claims else []
        return parts

    def write(self, folder: Path) -> list[Path]:
        """Write ``<name>.md``, ``<name>/<figure>.svg`` and the verdicts; figures of an earlier call are removed."""
        written = []
        for name, figure in self.figures.items():
            written += save(figure, folder / self.name / name, kinds=("svg",))
        for path in set((folder / self.name).glob("*.svg")) - set(written):
            path.unlink()
        verdicts = {
            "title": self.title,
            "citation": self.citation,
            "claims": [claim.told() for claim in self.claims],
        }
        texts = {
            folder / f"{self.name}.md": self.markdown(),
            folder / self.name / VERDICTS: json.dumps(verdicts, indent=1, ensure_ascii=False) + "\n",
        }
        for path, text in texts.items():
            write_text(path, text)
        return [*written, *texts]


def _written(claims: Iterable[Claim]) -> str:
    """Tell how many of the rules that judge were written after, or meanwhile."""
    judging = [claim for claim in claims if claim.finding.rule != NO_RULE]
    late = sum(AFTER in claim.why or MEANWHILE in claim.why for claim in judging)
    known = f", but for {late} of {len(judging)}, of which the last column says so" if late else ""
    return f"Each rule was written down before the run that it judges{known}."


def _judged(finding: Finding) -> str:
    if finding.rule == NO_RULE:
        return finding.n.removeprefix("0: ")
    return f"{finding.n}; {COMMON.get(finding.rule, finding.rule)}; {finding.otherwise}"


def overview(folder: Path) -> str:
    """Sum up the verdicts of all pages in a folder, as a table; of claims of ours in a column of their own."""
    rows = ["| paper | " + " | ".join(Verdict) + " | ours reproduced |", "| --- |" + " --: |" * (len(Verdict) + 1)]
    for path in sorted(folder.glob(f"*/{VERDICTS}")):
        found = json.loads(path.read_text(encoding="utf-8"))
        of = {ours: [c["verdict"] for c in found["claims"] if c["ours"] == ours] for ours in (False, True)}
        cells = [str(of[False].count(each)) for each in Verdict]
        cells += [f"{of[True].count(Verdict.REPRODUCED)} of {len(of[True])}" if of[True] else "–"]
        mark = "" if all("rule" in claim for claim in found["claims"]) else " †"
        rows.append(f"| [{found['title']}]({path.parent.name}.md){mark} | {' | '.join(cells)} |")
    old = any("†" in row for row in rows)
    return "\n".join(rows) + ("\n\n† Judged by earlier rules, until the experiment is run again." if old else "")


def ours(estimate: Estimate, digits: int = 3) -> str:
    """Write a mean with its standard error, an exact value without one."""
    text = number(estimate.mean, estimate.error or math.nan, digits)
    return f"{text} ({estimate.n_diverged} diverged)" if estimate.n_diverged else text


def beside(paper: float | None, estimate: Estimate, digits: int = 3) -> list[str]:
    """Write three cells: the paper's number, ours, and the difference."""
    if paper is None:
        return ["–", ours(estimate, digits), "–"]
    difference = estimate.mean - paper
    sign = "+" if difference > 0 else ""
    shown = "–" if math.isnan(difference) else f"{sign}{number(difference, digits=digits)}"
    return [number(paper, digits=digits), ours(estimate, digits), shown]


def comparison(
    page: Page,
    paper: Mapping[str, Mapping[str, Mapping[str, float]]],
    measures: Mapping[str, tuple[str, str, int]],
    names: Mapping[str, str],
) -> None:
    """Add a table: for each data set and method the paper's numbers beside ours.

    Parameters
    ----------
    page : Page
    paper : mapping
        By data set, method and measure.
    measures : mapping of str to (heading, path, digits)
        Which of our measures each is; see ``Results.values``.
    names : mapping
        What the paper calls our methods and data sets.
    """
    headings = ["data set", "method"]
    headings += [text for head, _, _ in measures.values() for text in (f"{head}, paper", "ours", "difference")]
    rows = []
    for dataset, methods in paper.items():
        for method, numbers in methods.items():
            if page.results.has(dataset, method):
                cells = [names.get(dataset, dataset), names.get(method, method)]
                for key, (_, path, digits) in measures.items():
                    cells += beside(numbers.get(key), page.results.estimate(dataset, method, path), digits)
                rows.append(cells)
    page.table(headings, rows)


def _what_was_run(results: Results) -> str:
    seeds = sorted({fit.seed for fit in results.fits})
    trials = sum(len(search.trials) for search in results.searches)
    seconds = sum(fit.status.get("seconds") or 0.0 for fit in results.fits)
    seconds += sum(trial.status.get("seconds") or 0.0 for search in results.searches for trial in search.trials)
    searched = f" and {trials} trials of searches" if trials else ""
    reduced = "" if not results.name.endswith("-quick") else " (the reduced run, whose numbers are not the paper's)"
    return (
        f"{len(results.fits)} fits{searched}{reduced}, seeds {', '.join(map(str, seeds))}, {seconds / 60:.0f} "
        f"minutes of training in all on {_machines(results)}{_commits(results)}; means with standard errors"
    )


def _commits(results: Results) -> str:
    runs = [*results.fits, *(trial for search in results.searches for trial in search.trials)]
    named = commits(run.status for run in runs)
    return f", by the code of {' and '.join(named)}" if named else ""


def _machines(results: Results) -> str:
    machines: list[Any] = [fit.status.get("machine", {}) for fit in results.fits]
    names = sorted({str(machine.get("cpu", "an unknown machine")) for machine in machines})
    return ", ".join(names)
