"use strict";
// The figures of the report: each <section class="chart"> holds its data, its controls and the place where it is drawn.
(() => {
  const LOG_FROM = 20; // the longest time over the shortest from which a logarithmic axis tells more
  const BELOW_START = 1.3; // times the log-loss at the start: what is still shown
  const MARGIN = 0.05;
  const LEAST = 1e-6; // what a logarithmic axis has a place for
  const WIDTH = 2, SIZE = 8; // of a line and a marker
  const STEPS = [[1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9], [1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]; // of ticks in a decade
  const CONFIG = { displayModeBar: false, displaylogo: false, responsive: true, showTips: false, doubleClick: false };
  const TOUCH = matchMedia("(pointer: coarse)").matches;

  const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
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
      hoverlabel: { bgcolor: theme.paper, bordercolor: theme.line, font: { color: theme.ink }, align: "left", namelength: -1 } };
  }

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

  class Curves {
    constructor(section) {
      this.data = JSON.parse(section.querySelector("script").textContent);
      this.place = section.querySelector(".plot");
      this.table = section.querySelector("table.values");
      this.control = (name) => section.querySelector(`[name="${name}"]`);
      this.boxes = [...section.querySelectorAll('[name="method"]')];
      this.window = null; // the part of the x axis that is seen, in its own coordinates
      this.control("measure").addEventListener("change", () => this.begin());
      this.control("axis").addEventListener("change", () => this.begin());
      for (const name of ["log-x", "log-y"]) this.control(name).addEventListener("change", () => this.restart());
      for (const box of this.boxes) box.addEventListener("change", () => this.draw());
      for (const button of section.querySelectorAll("[data-methods]")) {
        button.addEventListener("click", () => this.choose(button.dataset.methods === "all"));
      }
      for (const button of section.querySelectorAll("[data-zoom]")) {
        button.addEventListener("click", () => this.zoom(button.dataset.zoom));
      }
      if (!this.data.measures.length) return;
      this.begin();
      this.place.on("plotly_relayout", (change) => {
        if (!("xaxis.range[0]" in change)) return;
        this.window = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
        this.draw();
      });
      this.place.on("plotly_doubleclick", () => this.restart());
      followKeys(this.place, section.querySelector(".readout"), () => this.lines);
    }

    get measure() { return this.data.measures.find((each) => each.name === this.control("measure").value); }
    get axis() { return this.control("axis").value; }
    get logX() { return this.control("log-x").checked; }
    get logY() { return this.control("log-y").checked; }
    get shown() { return this.boxes.filter((box) => box.checked).map((box) => this.data.methods[box.value]); }

    /** Choose the scales that suit what is to be drawn, and draw it whole. */
    begin() {
      const later = this.records(this.data.methods).filter((record) => record.epoch > 0 && record.x > 0).map((record) => record.x);
      this.control("log-x").checked = Math.max(...later) > LOG_FROM * Math.min(...later);
      const all = this.records(this.data.methods).map((record) => record.y);
      const possible = all.every((y) => y <= 0) || all.every((y) => y >= 0);
      this.control("log-y").disabled = !possible;
      this.control("log-y").checked = possible && this.measure.logarithmic;
      this.mirrored = all.some((y) => y < 0); // a log-loss upside down, so that better is up
      this.restart();
    }

    restart() {
      this.window = null;
      this.draw();
    }

    choose(all) {
      for (const box of this.boxes) box.checked = all;
      this.draw();
    }

    /** List all records of some methods, means over seeds and seeds that diverged, as they are drawn. */
    records(methods) {
      const found = [];
      const add = (x, epoch, y) => { if (x !== null && y !== null) found.push({ x, epoch, y }); };
      for (const method of methods) {
        const curve = method.curves[this.measure.name];
        curve.mean.forEach((y, i) => add(curve.x[this.axis][i], curve.x.epoch[i], y));
        for (const seed of method.broken) {
          seed.y[this.measure.name].forEach((y, i) => add(seed.x[this.axis][i], seed.x.epoch[i], y));
        }
      }
      return found;
    }

    onX(value) { return this.logX ? Math.log10(value) : value; }
    across(xs) { return this.logX ? xs.map((x) => (x > 0 ? x : null)) : xs; }
    drawn(y) { return y === null || !this.logY ? y : Math.max(this.mirrored ? -y : y, LEAST); }

    /** Give the whole range of the x axis: on a logarithmic one, from the first record after the start. */
    wholeX() {
      const records = this.records(this.shown);
      const xs = (this.logX ? records.filter((record) => record.epoch > 0 && record.x > 0) : records).map((record) => record.x);
      if (!xs.length) return [0, 1];
      const [low, high] = [this.onX(Math.min(...xs)), this.onX(Math.max(...xs))];
      const margin = MARGIN * (high - low) || MARGIN;
      return [low - (this.logX || low < 0 ? margin : margin / 2), high + margin];
    }

    /** Fit the y axis to what is seen; records at the start, or far below it, would squeeze the others. */
    rangeY([low, high]) {
      const records = this.records(this.shown);
      const seen = records.filter(({ x }) => this.onX(x) >= low && this.onX(x) <= high);
      const later = seen.filter(({ epoch }) => epoch > 0);
      const start = records.filter(({ epoch }) => epoch === 0).map(({ y }) => y);
      const least = this.mirrored && start.length ? BELOW_START * Math.min(...start) : -Infinity;
      const ys = (later.length ? later : seen).map(({ y }) => this.drawn(Math.max(y, least)));
      if (!ys.length) return this.logY ? [-1, 0] : [0, 1];
      const ends = [Math.min(...ys), Math.max(...ys)].map((y) => (this.logY ? Math.log10(y) : y));
      const margin = MARGIN * (ends[1] - ends[0]) || MARGIN;
      const range = [ends[0] - margin, ends[1] + margin];
      return this.logY && this.mirrored ? range.reverse() : range;
    }

    zoom(how) {
      const [low, high] = this.window || this.wholeX();
      const [middle, width] = [(low + high) / 2, high - low];
      const windows = { in: [middle - width / 4, middle + width / 4], out: [middle - width, middle + width], all: null,
        left: [low - width / 4, high - width / 4], right: [low + width / 4, high + width / 4] };
      this.window = windows[how];
      this.draw();
    }

    draw() {
      if (!this.data.measures.length) return;
      const theme = themeOf(this.place);
      const { traces, lines } = this.traces(theme);
      this.lines = lines;
      const window = this.window || this.wholeX();
      const [across, upwards] = sizesOf(this.place);
      const xaxis = axisOf(theme, this.data.axes[this.axis], this.logX, window, across);
      const prefix = this.logY && this.mirrored ? "−" : "";
      const yaxis = axisOf(theme, this.measure.title, this.logY, this.rangeY(window), upwards, prefix);
      Plotly.react(this.place, traces, layoutOf(this.place, theme, xaxis, { ...yaxis, fixedrange: true }), CONFIG);
      this.tabulate();
    }

    /** Make plotly's traces, and the lines that the arrow keys follow. */
    traces(theme) {
      const traces = [], lines = [], name = this.measure.name;
      const said = (method, more, x, y) =>
        `${method.name}${more}: ${this.measure.title} ${written(y)} at ${written(x)}, ${this.data.axes[this.axis]}`;
      const follow = (method, more, x, y, style) => {
        const texts = y.map((value, i) => said(method, more(i), x[i], value)), across = this.across(x);
        const points = texts.map((text, index) => ({ text, index })).filter(({ index: i }) => across[i] !== null && y[i] !== null);
        if (points.length) lines.push({ curve: traces.length, points });
        traces.push({ x: across, y: y.map((value) => this.drawn(value)), hovertext: texts.map(escaped), hoverinfo: "text", ...style });
      };
      for (const method of this.shown) {
        const color = colored(method.color, theme), curve = method.curves[name];
        const x = curve.x[this.axis];
        const look = { mode: "lines+markers", line: { color, dash: method.dash, width: WIDTH },
          marker: { color, symbol: method.symbol, size: SIZE, line: { color: theme.paper, width: 0.6 } } };
        if (method.n_seeds > 1) {
          const from = this.across(x).filter((at) => at === null).length; // where a logarithmic axis begins
          const [along, low, high] = [x, curve.low, curve.high].map((values) => values.slice(from));
          traces.push({ x: [...along, ...along.toReversed()], y: [...low, ...high.toReversed()].map((y) => this.drawn(y)),
            mode: "lines", line: { width: 0 }, fill: "toself", fillcolor: color, opacity: 0.2, hoverinfo: "skip" });
        }
        const among = (i) => method.n_seeds > 1
          ? ` (${method.n_seeds} seeds from ${written(curve.low[i])} to ${written(curve.high[i])})` : "";
        if (x.length) follow(method, among, x, curve.mean, look);
        for (const seed of method.broken) {
          const symbols = seed.x[this.axis].map((_, i, all) => (i === all.length - 1 ? "x" : method.symbol));
          follow(method, () => ` (seed ${seed.seed}, diverged)`, seed.x[this.axis], seed.y[name],
            { ...look, line: { ...look.line, width: 1 }, marker: { ...look.marker, symbol: symbols, size: SIZE + 2 } });
        }
        const kept = method.kept.map((seed) => [seed.x[this.axis][0], this.drawn(seed.y[name][0])]);
        traces.push({ x: kept.map(([at]) => at), y: kept.map(([, y]) => y), mode: "markers", hoverinfo: "skip",
          marker: { symbol: "circle-open", size: 14, color, line: { width: 1.5 } } });
      }
      return { traces, lines };
    }

    /** Write what is drawn as a table. */
    tabulate() {
      const rows = this.shown.flatMap((method) => {
        const { x, mean, low, high } = method.curves[this.measure.name];
        return mean.map((value, i) => [method.name, x[this.axis][i], value, ...(method.n_seeds > 1 ? [low[i], high[i]] : [null, null])]);
      });
      const cell = (tag, text, k) => {
        const made = document.createElement(tag);
        made.textContent = typeof text === "string" ? text : written(text);
        if (k === 0) made.className = "text stick";
        return made;
      };
      const line = (tag, cells) => {
        const made = document.createElement("tr");
        made.append(...cells.map((text, k) => cell(tag, text, k)));
        return made;
      };
      const [head, body] = ["thead", "tbody"].map((tag) => document.createElement(tag));
      head.append(line("th", ["method", this.data.axes[this.axis], this.measure.title, "worst seed", "best seed"]));
      body.append(...rows.map((cells) => line("td", cells)));
      this.table.replaceChildren(head, body);
    }
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
})();
