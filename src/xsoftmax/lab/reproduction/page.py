"""The page of a paper: its numbers beside ours, figures, and a verdict for each of its claims."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from xsoftmax.internal.files import write_text
from xsoftmax.lab.report.figures import save
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.results import Estimate, Results

# A number is the paper's if it differs by no more, relatively, or by no more than two standard errors.
TOLERANCE = 0.03
# Beside a page's figures: its claims, for ``overview``.
VERDICTS = "verdicts.json"
COMMAND = "make run CONFIG=config/experiments/{name}.yaml"


class Verdict(StrEnum):
    """How far a claim of a paper holds here."""

    REPRODUCED = "reproduced"
    IN_SHAPE = "reproduced in shape"
    NOT = "not reproduced"
    OPEN = "not tried yet"


@dataclass(frozen=True)
class Claim:
    """Something that a paper says, in our words, what was found here, and why it differs if it does."""

    says: str
    here: str
    verdict: Verdict
    why: str = ""


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

    def claim(self, says: str, here: str, verdict: Verdict, why: str = "") -> None:
        """Add a claim of the paper, and what became of it."""
        self.claims.append(Claim(says, here, verdict, why))

    def markdown(self) -> str:
        """Give the whole page."""
        head = [
            f"# {self.title}",
            f"{self.citation}.",
            f"Made by `{self.command.format(name=self.name)}` from {_what_was_run(self.results)}. Nothing on this "
            "page is typed in but the paper's numbers, which are in "
            f"[src/xsoftmax/lab/papers/{self.name}.yaml](../../src/xsoftmax/lab/papers/{self.name}.yaml).",
        ]
        return "\n\n".join([*head, *self._verdicts(), *self.parts]) + "\n"

    def _verdicts(self) -> list[str]:
        if not self.claims:
            return []
        rows = [f"| {claim.says} | {claim.here} | **{claim.verdict}** | {claim.why} |" for claim in self.claims]
        table = "\n".join(["| the paper says | here | verdict | why |", "| --- | --- | --- | --- |", *rows])
        rule = (
            f"A number counts as reproduced within {TOLERANCE:.0%} or two standard errors of ours, an order if it is "
            "there by more than two standard errors; in shape, if only the order is there or numbers are near."
        )
        return ["## Verdicts", rule, table]

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
            "claims": [asdict(claim) for claim in self.claims],
        }
        texts = {
            folder / f"{self.name}.md": self.markdown(),
            folder / self.name / VERDICTS: json.dumps(verdicts, indent=1, ensure_ascii=False) + "\n",
        }
        for path, text in texts.items():
            write_text(path, text)
        return [*written, *texts]


def overview(folder: Path) -> str:
    """Sum up the verdicts of all pages in a folder, as a table."""
    rows = ["| paper | " + " | ".join(Verdict) + " |", "| --- |" + " --: |" * len(Verdict)]
    for path in sorted(folder.glob(f"*/{VERDICTS}")):
        found = json.loads(path.read_text(encoding="utf-8"))
        counts = Counter(claim["verdict"] for claim in found["claims"])
        name = path.parent.name
        rows.append(f"| [{found['title']}]({name}.md) | " + " | ".join(str(counts[each]) for each in Verdict) + " |")
    return "\n".join(rows)


def ours(estimate: Estimate, digits: int = 3) -> str:
    """Write a mean with its standard error."""
    text = number(estimate.mean, estimate.error, digits)
    return f"{text} ({estimate.n_diverged} diverged)" if estimate.n_diverged else text


def beside(paper: float | None, estimate: Estimate, digits: int = 3) -> list[str]:
    """Write three cells: the paper's number, ours, and the difference."""
    if paper is None:
        return ["–", ours(estimate, digits), "–"]
    difference = estimate.mean - paper
    sign = "+" if difference > 0 else ""
    shown = "–" if math.isnan(difference) else f"{sign}{number(difference, digits=digits)}"
    return [number(paper, digits=digits), ours(estimate, digits), shown]


def agrees(paper: float, estimate: Estimate, tolerance: float = TOLERANCE) -> bool:
    """Tell whether the paper's number is ours, within the tolerance or two standard errors."""
    return abs(estimate.mean - paper) <= max(tolerance * abs(paper), estimate.margin)


def above(better: Estimate, worse: Estimate) -> bool | None:
    """Tell whether one mean is above another by more than two standard errors; None if neither is."""
    difference = better.mean - worse.mean
    error = 2 * math.hypot(*(e.error if math.isfinite(e.error) else 0.0 for e in (better, worse)))
    return None if not abs(difference) > error else difference > 0


def verdict_of_orders(orders: Iterable[bool | None]) -> Verdict:
    """Judge several orders: all there, some the other way round, or too close to tell."""
    found = list(orders)
    if all(found):
        return Verdict.REPRODUCED
    return Verdict.NOT if found.count(False) * 2 >= len(found) else Verdict.IN_SHAPE


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
        f"minutes of training in all on {_machines(results)}; means with standard errors"
    )


def _machines(results: Results) -> str:
    machines: list[Any] = [fit.status.get("machine", {}) for fit in results.fits]
    names = sorted({str(machine.get("cpu", "an unknown machine")) for machine in machines})
    return ", ".join(names)
