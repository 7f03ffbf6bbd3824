// The figures of the report: each <section class="chart"> holds its data, its controls and the place of its figure.

/** Let the arrow keys go from point to point, and say aloud where they are. */
function followKeys(place, readout, linesOf) {
  let line = 0, point = -1;
  place.addEventListener("keydown", (event) => {
    const lines = linesOf();
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (!(event.key in steps) || !lines.length) return;
    event.preventDefault();
    const [down, along] = steps[event.key];
    line = (Math.min(line, lines.length - 1) + down + lines.length) % lines.length;
    const { curve, points } = lines[line];
    point = Math.max(0, Math.min(point + along, points.length - 1));
    readout.textContent = points[point].text;
    Plotly.Fx.hover(place, [{ curveNumber: curve, pointNumber: points[point].index }]);
  });
  place.addEventListener("blur", () => Plotly.Fx.unhover(place));
}

class Calibration {
  constructor(section) {
    this.best = JSON.parse(section.querySelector("script").textContent);
    this.place = section.querySelector(".plot");
    this.texts = this.best.calibration.map((bin) =>
      `confidence ${written(bin.confidence)}, accuracy ${written(bin.accuracy)}, ${bin.n} rows`);
    this.draw();
    followKeys(this.place, section.querySelector(".readout"), () => [{ curve: 1, points: this.texts.map((text, index) => ({ text, index })) }]);
  }

  draw() {
    const theme = themeOf(this.place), bins = this.best.calibration, accent = "#0072b2";
    const line = { x: bins.map((bin) => bin.confidence), y: bins.map((bin) => bin.accuracy), mode: "lines+markers",
      line: { color: accent, width: WIDTH }, marker: { color: accent, size: SIZE }, hovertext: this.texts, hoverinfo: "text" };
    const diagonal = { x: [0, 1], y: [0, 1], mode: "lines", line: { color: theme.ink, width: 1, dash: "dash" }, hoverinfo: "skip" };
    const [xaxis, yaxis] = ["confidence", "accuracy"].map((title, k) => axisOf(theme, title, false, [0, 1.02], sizesOf(this.place)[k]));
    const layout = layoutOf(this.place, theme, xaxis, yaxis);
    Plotly.react(this.place, [diagonal, line], { ...layout, dragmode: false }, CONFIG);
  }
}

const KINDS = { curves: Curves, calibration: Calibration };
const charts = [...document.querySelectorAll(".chart")].map((section) => new KINDS[section.dataset.chart](section));
const redraw = () => charts.forEach((chart) => chart.draw());
document.getElementById("theme").addEventListener("change", (event) => {
  document.documentElement.dataset.theme = event.target.value;
  redraw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
