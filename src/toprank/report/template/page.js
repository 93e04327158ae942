"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const lengths = data.lengths;

  // -- list length: every text is looked up, none is computed ------------------------------------
  const slider = byId("slider");
  const rows = byId("rows");
  const presets = [...document.querySelectorAll("[data-position]")];
  let position = data.start;
  let drawn = false;

  function nearest(length) {
    let best = 0;
    for (let place = 1; place < lengths.length; place += 1) {
      if (Math.abs(lengths[place] - length) < Math.abs(lengths[best] - length)) best = place;
    }
    return best;
  }

  function show(place, { typed = false } = {}) {
    position = place;
    const texts = data.lists[place];
    for (const [key, text] of Object.entries(texts)) {
      const target = byId("live-" + key.replaceAll("_range", "-range").replace("money_note", "money-note"));
      if (target) target.textContent = text;
    }
    slider.value = String(place);
    slider.setAttribute("aria-valuetext", texts.spoken);
    if (!typed) rows.value = String(lengths[place]);
    for (const button of presets) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.position) === place));
    }
    moveMarks();
  }

  function moveMarks() {
    if (!drawn) return;
    const traces = data.figures.lists.traces.length;
    const x = [lengths[position]];
    window.Plotly.restyle("lists", { x: [x, x], y: [[data.marks.precision[position]], [data.marks.recall[position]]] }, [traces - 2, traces - 1]);
  }

  slider.addEventListener("input", () => show(Number(slider.value)));
  rows.addEventListener("input", () => {
    const length = Number(rows.value);
    if (rows.value !== "" && Number.isFinite(length)) {
      show(nearest(length), { typed: true });
      byId("spoken").textContent = data.lists[position].spoken;
    }
  });
  rows.addEventListener("change", () => show(position));
  for (const button of presets) {
    button.addEventListener("click", () => {
      show(Number(button.dataset.position));
      byId("spoken").textContent = data.lists[position].spoken;
    });
  }

  // -- alerts ------------------------------------------------------------------------------------
  const STEP = window.innerWidth < 640 ? 20 : 100;
  const alerts = data.alerts;
  const haystacks = alerts.rows.map((row) => row.flat().join("\n").toLowerCase());
  let matching = alerts.rows.map((_, place) => place);
  let limit = STEP;

  function cellOf(text, column, first) {
    const cell = document.createElement(first ? "th" : "td");
    if (first) cell.scope = "row";
    cell.dataset.label = column.name;
    cell.className = column.kind;
    if (column.kind === "reasons") {
      const list = document.createElement("ul");
      for (const reason of [text].flat()) {
        const item = document.createElement("li");
        item.textContent = reason;
        list.append(item);
      }
      cell.append(list);
    } else if (column.kind === "outcome" && text) {
      const badge = document.createElement("span");
      badge.className = "badge " + (text === "right" ? "right" : "wrong");
      badge.textContent = text;
      cell.append(badge);
    } else {
      const span = document.createElement("span");
      span.textContent = text;
      cell.append(span);
    }
    return cell;
  }

  function list() {
    const body = document.createDocumentFragment();
    for (const place of matching.slice(0, limit)) {
      const line = document.createElement("tr");
      alerts.rows[place].forEach((text, column) => line.append(cellOf(text, alerts.columns[column], column === 0)));
      body.append(line);
    }
    byId("alert-rows").replaceChildren(body);
    const all = alerts.rows.length;
    byId("found").textContent = matching.length === all ? `${all} alerts` : `${matching.length} of ${all} alerts match`;
    byId("more").hidden = matching.length <= limit;
  }

  byId("search").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    matching = [];
    haystacks.forEach((text, place) => {
      if (words.every((word) => text.includes(word))) matching.push(place);
    });
    limit = STEP;
    list();
  });
  byId("more").addEventListener("click", () => {
    const next = limit;
    limit += STEP;
    list();
    const row = byId("alert-rows").children[next];
    if (row) { row.tabIndex = -1; row.focus(); }
  });
  byId("download").addEventListener("click", () => {
    const lines = [alerts.csv[0], ...matching.map((place) => alerts.csv[place + 1])];
    // the mark at the start tells spreadsheets that the text is UTF-8
    const file = new Blob(["\ufeff" + lines.join("\r\n") + "\r\n"], { type: "text/csv;charset=utf-8" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = "alerts.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });

  // -- sortable tables -----------------------------------------------------------------------------
  // A figure is read from the start of its cell: intervals and words behind it do not count.
  function sortKey(text) {
    const number = Number.parseFloat(text.replace(/[,\s\u2026]/g, "").replace(/^[^\d.+-]+(?=[\d.])/, ""));
    return /^\s*[+-]?[^\p{L}\s]{0,2}[\d.]/u.test(text) && Number.isFinite(number) ? number : null;
  }

  function compareTexts(first, second) {
    const a = sortKey(first), b = sortKey(second);
    if (a !== null && b !== null) return a - b;
    if (a === null && b === null) return first.localeCompare(second);
    return a === null ? 1 : -1;
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    if (table.classList.contains("stacked")) {  // on a narrow screen each cell stands behind its title
      const titles = heads.map((head) => head.childNodes[0].textContent);
      for (const line of table.tBodies[0].rows) {
        [...line.cells].forEach((cell, column) => { cell.dataset.label = titles[column]; });
      }
    }
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const falling = head.getAttribute("aria-sort") !== "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", falling ? "descending" : "ascending");
        const sign = falling ? -1 : 1;
        if (table.id === "alert-table") {
          const text = (place) => [alerts.rows[place][column]].flat().join(" ");
          matching.sort((a, b) => sign * compareTexts(text(a), text(b)) || a - b);
          list();
          return;
        }
        const lines = [...table.tBodies[0].rows];
        const texts = new Map(lines.map((line) => [line, line.cells[column].textContent]));
        lines.sort((a, b) => sign * compareTexts(texts.get(a), texts.get(b)));
        table.tBodies[0].append(...lines);
      });
    });
  }

  // -- plots -------------------------------------------------------------------------------------
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function colours() {
    const style = getComputedStyle(root);
    const names = ["ink", "soft", "muted", "grid", "surface", "line", "band-1", "band-2"];
    for (let shade = 1; shade <= 5; shade += 1) names.push("shade-" + shade);
    for (let series = 1; series <= 6; series += 1) names.push("series-" + series);
    return Object.fromEntries(names.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
  }

  function painted(thing, palette) {
    if (Array.isArray(thing)) return thing.map((item) => painted(item, palette));
    if (thing === null || typeof thing !== "object") return thing;
    return Object.fromEntries(Object.entries(thing).map(([key, item]) => [
      key,
      key.endsWith("color") && typeof item === "string" && item in palette ? palette[item] : painted(item, palette),
    ]));
  }

  // names of features leave room for the plot on a narrow screen
  const brief = (name) => (name.length > 18 ? name.slice(0, 9) + "\u2026" + name.slice(-8) : name);

  async function draw() {
    const palette = colours();
    const narrow = window.innerWidth < 640;
    const places = [...document.querySelectorAll("[data-figure]")];
    await Promise.all(places.map((place) => {
      const figure = data.figures[place.dataset.figure];
      const layout = painted(figure.layout, palette);
      // on a narrow screen the legend stands one name to a line: keep the height of the plot itself
      const names = figure.traces.filter((trace) => trace.name && trace.showlegend !== false).length;
      Object.assign(layout, {
        height: figure.height + (narrow && names > 2 ? 17 * names : 0),
        autosize: true,
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        font: { family: getComputedStyle(document.body).fontFamily, size: narrow ? 11.5 : 12.5, color: palette.soft },
        hoverlabel: { bgcolor: palette.surface, bordercolor: palette.line, font: { color: palette.ink, size: 12.5 }, namelength: 30 },
      });
      const traces = painted(figure.traces, palette);
      if (narrow) {
        layout.xaxis.nticks = 5;
        if (layout.yaxis.ticktext) layout.yaxis.ticktext = layout.yaxis.ticktext.map(brief);
        for (const trace of traces) if (trace.type === "bar" && trace.orientation === "h") trace.y = trace.y.map(brief);
      }
      return window.Plotly.react(place, traces, layout, { displayModeBar: false, responsive: true, showTips: false });
    }));
    drawn = true;
    moveMarks();
    root.dataset.plots = "ready";
  }

  async function unpack() {
    const packed = Uint8Array.from(atob(byId("library").textContent.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }

  function tooOld() {
    for (const place of document.querySelectorAll("[data-figure]")) {
      place.classList.add("failed");
      place.textContent = "This browser cannot draw the plot; its figures are in the table below.";
    }
    root.dataset.plots = "failed";
  }

  const theme = byId("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const now = root.dataset.theme || (dark.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    if (drawn) draw();
  });
  dark.addEventListener("change", () => { if (drawn) draw(); });

  show(position);
  list();
  unpack().then(draw).catch(tooOld);
})();
