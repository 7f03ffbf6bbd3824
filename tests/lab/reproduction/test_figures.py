"""Figures of papers' pages."""

import numpy as np
import pytest

from xsoftmax.lab.reproduction.figures import Line, Panel, figure_of


@pytest.mark.parametrize("length", [5, 30, 70])
def test_no_name_in_a_legend_is_cut_off(length):
    names = [str(k) * length for k in range(8)]
    lines = [Line(name, np.array([1.0, 2.0]), np.array([1.0, 2.0]), method=name) for name in names]
    figure = figure_of([Panel("one", lines, "x", "y")] * 3)
    figure.draw_without_rendering()
    box, (legend,) = figure.bbox, figure.legends
    found = legend.get_window_extent()
    assert box.x0 <= found.x0
    assert found.x1 <= box.x1
