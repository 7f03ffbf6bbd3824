// The curves of a data set: what its controls choose is drawn, and written as a table.

const LOG_FROM = 20; // the longest time over the shortest from which a logarithmic axis tells more
const BELOW_START = 1.3; // times the log-loss at the start: what is still shown
const MARGIN = 0.05;
const LEAST = 1e-6; // what a logarithmic axis has a place for
const WIDTH = 2, SIZE = 8; // of a line and a marker

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

  /** Zoom or move, within the whole range. */
  zoom(how) {
    const whole = this.wholeX();
    const [low, high] = this.window || whole;
    const [middle, width] = [(low + high) / 2, high - low];
    const windows = { in: [middle - width / 4, middle + width / 4], out: [middle - width, middle + width], all: whole,
      left: [low - width / 4, high - width / 4], right: [low + width / 4, high + width / 4] };
    const [from, to] = windows[how];
    const past = Math.max(0, whole[0] - from) - Math.max(0, to - whole[1]);
    this.window = to - from >= whole[1] - whole[0] ? null : [from + past, to + past];
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
    const said = (method, more, x, y) => [method.name, `${this.measure.title}: ${written(y)}`, ...more,
      `${this.data.axes[this.axis]}: ${written(x)}`];
    const follow = (method, more, x, y, style) => {
      const texts = y.map((value, i) => said(method, more(i), x[i], value)), across = this.across(x);
      const points = texts.map((text, index) => ({ text: text.join(", "), index })).filter(({ index: i }) => across[i] !== null && y[i] !== null);
      if (points.length) lines.push({ curve: traces.length, points });
      traces.push({ x: across, y: y.map((value) => this.drawn(value)), hoverinfo: "text",
        hovertext: texts.map((lines) => lines.map(labelled).join("<br>")), ...style });
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
        ? [`${method.n_seeds} seeds: ${written(curve.low[i])} to ${written(curve.high[i])}`] : [];
      if (x.length) follow(method, among, x, curve.mean, look);
      for (const seed of method.broken) {
        const last = seed.y[name].findLastIndex((y) => y !== null);
        const symbols = seed.y[name].map((_, i) => (i === last ? "x" : method.symbol));
        follow(method, () => [`seed ${seed.seed}, diverged`], seed.x[this.axis], seed.y[name],
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
    const name = this.measure.name;
    const rows = this.shown.flatMap((method) => {
      const { x, mean, low, high } = method.curves[name];
      const broken = method.broken.flatMap((seed) => seed.y[name].map((value, i) =>
        [`${method.name} (seed ${seed.seed}, diverged)`, seed.x[this.axis][i], value, null, null]));
      const spread = (i) => (method.n_seeds > 1 ? [low[i], high[i]] : [null, null]);
      return [...mean.map((value, i) => [method.name, x[this.axis][i], value, ...spread(i)]), ...broken];
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
