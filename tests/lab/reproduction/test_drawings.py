import numpy as np
import pytest

from xsoftmax.lab.reproduction.drawings import Borders, Series, bars, leads, plane
from xsoftmax.lab.reproduction.figures import Panel, figure_of
from xsoftmax.model import Model

W = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0.5]], np.float32)
MODEL = Model.of_rows(W, ["a", "b", "c"], 2)


def test_a_class_leads_by_the_difference_to_the_highest_other_score():
    found = leads(MODEL, np.array([2.0, 0.0]), np.array([0.0, 3.0, 0.2]))
    assert found.shape == (3, 3, 2)
    assert found[:, 0, 0] == pytest.approx([1.5, -2, -1.5])  # scores 2, 0, 0.5
    assert found[:, 1, 1] == pytest.approx([-3, 2.5, -2.5])  # scores 0, 3, 0.5
    assert found[:, 2, 1] == pytest.approx([-0.5, -0.3, 0.3])  # scores 0, 0.2, 0.5


def test_bars_and_borders_share_a_legend():
    X, y = np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 1.0]]), np.array([0, 1, 2])
    panels = [
        Panel("bars", [], "value", "share", also=bars(["1", "2"], [Series("model", "red", np.array([0.4, 0.6]))])),
        Panel("plane", [], "first", "second", also=plane(X, y, [Borders("model", "red", MODEL)])),
    ]
    figure = figure_of(panels)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["model"]
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    assert heights == [0.4, 0.6]
