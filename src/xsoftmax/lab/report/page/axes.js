// Words, colours, ticks and axes of the figures of the report.

const LETTERS = 40; // in a line of a label
const STEPS = [[1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9], [1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]; // of ticks in a decade
const CONFIG = { displayModeBar: false, displaylogo: false, responsive: true, showTips: false, doubleClick: false };
const TOUCH = matchMedia("(pointer: coarse)").matches;

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
/** Write a line of a label, cut to what a phone has place for. */
const labelled = (text) => escaped(text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text);
const plain = (value) => (Number.isInteger(value) ? value.toLocaleString("en-US") : String(Number(value.toPrecision(5))));
const written = (value) => (value === null ? "–" : plain(value).replace("-", "−"));

/** Give the colours of the theme, as the place of a figure has them. */
function themeOf(place) {
  const style = getComputedStyle(place);
  return { ink: style.color, paper: style.backgroundColor, line: style.borderTopColor };
}

/** Give the pixels of both axes, and how many a tick needs. */
const sizesOf = (place) => [[place.clientWidth - 90, 56], [place.clientHeight - 70, 26]];
const colored = (color, theme) => (color.startsWith("var") ? theme.ink : color);

/** Find round numbers between two for a logarithmic axis of some pixels, as many as have `apart` pixels each. */
function roundNumbers(low, high, pixels, apart) {
  const decade = pixels / Math.log10(high / low);
  for (const steps of STEPS) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      found.push(...steps.map((step) => Number(`${step}e${power}`)).filter((tick) => tick >= low && tick <= high));
    }
    const gaps = found.slice(1).map((tick, i) => decade * Math.log10(tick / found[i]));
    if (found.length > 2 && Math.min(...gaps) >= apart) return found;
  }
  if (high / low > 100) { // decades, some of them left out
    const step = Math.ceil(apart / decade);
    const first = Math.ceil(Math.log10(low) / step) * step;
    const n = Math.max(0, Math.floor((Math.log10(high) - first) / step) + 1);
    return Array.from({ length: n }, (_, i) => Number(`1e${first + i * step}`));
  }
  const rough = ((high - low) * apart) / pixels, size = 10 ** Math.floor(Math.log10(rough));
  const step = size * [1, 2, 5, 10].find((each) => each * size >= rough);
  const n = Math.floor(high / step) - Math.ceil(low / step) + 1;
  return Array.from({ length: Math.max(0, n) }, (_, i) => Number(((Math.ceil(low / step) + i) * step).toPrecision(10)));
}

/** Describe an axis of some pixels; a number that ticks stand for has `prefix` before it. */
function axisOf(theme, title, logarithmic, range, [pixels, apart], prefix = "") {
  const axis = { title: { text: title }, type: logarithmic ? "log" : "linear", range, gridcolor: theme.line, linecolor: theme.line,
    zerolinecolor: theme.line, automargin: true, nticks: Math.max(3, Math.min(10, Math.floor(pixels / apart))) };
  if (!logarithmic) return axis;
  const tickvals = roundNumbers(10 ** Math.min(...range), 10 ** Math.max(...range), pixels, apart);
  return { ...axis, tickmode: "array", tickvals, ticktext: tickvals.map((tick) => prefix + written(tick)) };
}

function layoutOf(place, theme, xaxis, yaxis) {
  return { xaxis, yaxis, showlegend: false, hovermode: "closest", dragmode: TOUCH ? false : "zoom", autosize: true,
    margin: { l: 8, r: 14, t: 14, b: 8 }, paper_bgcolor: theme.paper, plot_bgcolor: theme.paper,
    font: { color: theme.ink, family: getComputedStyle(document.body).fontFamily, size: 12.5 },
    hoverlabel: { bgcolor: theme.paper, bordercolor: theme.line, align: "left", namelength: -1,
      font: { color: theme.ink, family: getComputedStyle(document.body).fontFamily, size: 12 } } };
}
