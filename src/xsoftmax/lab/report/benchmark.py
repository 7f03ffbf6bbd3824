"""Figures and generated Markdown of benchmarks, from the JSON that they wrote."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError
from xsoftmax.lab import benchmark_file
from xsoftmax.lab.marked_blocks import Writers
from xsoftmax.lab.report.figures import save_plain
from xsoftmax.lab.report.suites import STYLE

SUITES = "xsoftmax.lab.report.suites"


def read_results(paths: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Read what `benchmark SUITE --json` wrote, by suite.

    Raises
    ------
    InputError
        If a file is missing or holds something else, or two are of the same suite.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        content = benchmark_file.read(path)
        if content["suite"] not in (known := registry.names(SUITES)):
            raise InputError(f"{path}: unknown suite {content['suite']!r}; known: {', '.join(known)}")
        if content["suite"] in found:
            raise InputError(f"{path}: a second file of suite {content['suite']}; give one of each")
        found[content["suite"]] = content
    return found


def writers(results: Mapping[str, dict[str, Any]], figures: str) -> Writers:
    """Give the writers of the suites' blocks.

    The first block of each suite opens with the machine it comes from, and one that has the name of a figure ends
    with it. Blocks of suites that are not among the results have no writer, and so stay as they are.

    Parameters
    ----------
    results : mapping of str to dict
        What ``read_results`` gives.
    figures : str
        The folder of the figures, as the page is to link it.
    """
    texts: dict[str, str] = {}
    for suite, content in results.items():
        shown = registry.load(SUITES, suite)
        own = dict(shown.blocks(content))
        first = next(iter(own))
        own[first] = f"{machine(content['machine'])}\n\n{own[first]}"
        for name in shown.figures(content):
            own[name] = f"{own[name].rstrip()}\n\n![{name}]({figures}/{name}.svg)"
        texts |= own
    return {name: partial(_same, text) for name, text in texts.items()}


def _same(text: str, argument: str) -> str:
    """A block without an argument."""
    return text


def write_figures(results: Mapping[str, dict[str, Any]], folder: Path) -> list[Path]:
    """Draw all suites' figures as SVG."""
    written = []
    for suite, content in results.items():
        for name, figure in registry.load(SUITES, suite).figures(content).items():
            written.append(folder / f"{name}.svg")
            save_plain(figure, written[-1], STYLE)
    return written


def machine(found: Mapping[str, Any]) -> str:
    """Say on what was measured, in a sentence or two."""
    caches = ", ".join(f"{name} {_size(size)}" for name, size in found["caches"].items())
    versions = ", ".join(f"{name} {found[name]}" for name in ("python", "numpy", "scipy", "numba") if found.get(name))
    return (
        f"Measured on {found['date']} at commit {found['commit']}: {found['processor']}, {found['cores']} cores, "
        f"caches {caches or 'unknown'}, {found['memory_gb']:g} GB, huge pages: {found['huge_pages']}; {versions}, "
        f"BLAS {', '.join(sorted(set(found['blas'])))}; load before the run {found['load'][0]:g}."
    )


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:g} MB" if n_bytes >= 2**20 else f"{n_bytes / 2**10:g} kB"
