// The map: view, pointer and selection.
const byId = (name) => document.getElementById(name);
const [map, hover, panel, results, search] = ["map", "hover", "panel", "results", "search"].map(byId);
const pen = map.getContext("2d", { willReadFrequently: true });
const view = { x: 0.5, y: 0.5, zoom: 1, width: 1, height: 1 };
const HOME = 0.9; // share of the shorter side of the canvas that the whole map takes
const BINS = 24;
const RAMPS = [["#b3cfe8", "#5aa2d6", "#0072b2", "#004a75", "#00233a"], ["#1d4a73", "#2f7fbf", "#66b2e8", "#a8d8f8", "#eef9ff"]];
let column = columns[0] || null;
let only = null; // code of the legend entry that is highlighted, if any
let pointed = -1;
let current = -1;
let chosen = new Set();
let lassoing = false;
let path = []; // corners of the lasso, in pixels
let redrawRequested = false;

const scaleOf = () => HOME * Math.min(view.width, view.height) * view.zoom;
const toScreen = (graph) => {
  const scale = scaleOf();
  return [(places[2 * graph] - view.x) * scale + view.width / 2, (places[2 * graph + 1] - view.y) * scale + view.height / 2];
};
const redraw = () => {
  if (redrawRequested) return;
  redrawRequested = true;
  requestAnimationFrame(() => { redrawRequested = false; paint(); });
};

// Marks: each pair of colour and shape is drawn once, then copied pixel by pixel into one picture. Drawing ten
// thousand small canvases would take a browser without a graphics card ten times as long.
const SHAPES = [
  (p, r) => p.arc(0, 0, r, 0, 2 * Math.PI),
  (p, r) => polygon(p, [[0, -1.15 * r], [1.1 * r, 0.85 * r], [-1.1 * r, 0.85 * r]]),
  (p, r) => p.rect(-0.9 * r, -0.9 * r, 1.8 * r, 1.8 * r),
  (p, r) => polygon(p, [[0, -1.25 * r], [1.25 * r, 0], [0, 1.25 * r], [-1.25 * r, 0]]),
  (p, r) => polygon(p, [[0, 1.15 * r], [1.1 * r, -0.85 * r], [-1.1 * r, -0.85 * r]]),
  (p, r) => { p.rect(-1.2 * r, -0.45 * r, 2.4 * r, 0.9 * r); p.rect(-0.45 * r, -1.2 * r, 0.9 * r, 2.4 * r); },
  (p, r) => { p.rotate(Math.PI / 4); p.rect(-1.2 * r, -0.45 * r, 2.4 * r, 0.9 * r); p.rect(-0.45 * r, -1.2 * r, 0.9 * r, 2.4 * r); },
];
const polygon = (p, corners) => { corners.forEach((corner, i) => (i ? p.lineTo(...corner) : p.moveTo(...corner))); p.closePath(); };
const SHOWN = graphs > 200 ? 0.72 : 0.9; // opacity: where many points lie, the colour is deeper
const drawMark = (kind, radius, ratio, faint = false, opacity = 1) => {
  const side = Math.ceil((2.8 * radius + 3) * ratio);
  const mark = element("canvas", { width: side, height: side });
  const p = mark.getContext("2d", { willReadFrequently: true });
  p.translate(side / 2, side / 2);
  p.scale(ratio, ratio);
  p.beginPath();
  // When the colours start over, shapes shift by one, as in the figures.
  const shape = column && column.codes ? (kind + Math.floor(kind / data.palette.length)) % SHAPES.length : 0;
  SHAPES[shape](p, radius);
  p.lineWidth = graphs > 1000 ? 0.5 : 1;
  p.strokeStyle = kind < 0 ? themed("--quiet") : themed("--page");
  p.fillStyle = kind < 0 ? themed("--page") : column && column.codes ? colourOf(kind) : rampAt(kind / BINS);
  p.globalAlpha = faint ? 0.15 : opacity;
  if (!faint) p.stroke();
  p.fill();
  return mark;
};
const pixelsOf = (canvas) => new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
let marks = new Map(); // cache by kind, radius and faintness; cleared when colours or sizes change
const markOf = (kind, radius, ratio, faint) => {
  const key = 2000 * (2 * kind + (faint ? 1 : 0)) + 2 * radius;
  if (!marks.has(key)) {
    const drawn = drawMark(kind, radius, ratio, faint, SHOWN), pixels = pixelsOf(drawn), side = drawn.width;
    const there = [...pixels.keys()].filter((at) => pixels[at] >>> 24);
    marks.set(key, {
      side,
      colours: Uint32Array.from(there, (at) => pixels[at]),
      offsets: Int32Array.from(there, (at) => Math.floor(at / side) * map.width + (at % side)),
    });
  }
  return marks.get(key);
};
const stamp = (picture, wide, mark, x, y) => {
  const { colours, offsets } = mark;
  const start = Math.round(y - mark.side / 2) * wide + Math.round(x - mark.side / 2);
  for (let i = 0; i < colours.length; i++) {
    const pixel = colours[i], alpha = pixel >>> 24, at = start + offsets[i];
    if (alpha === 255) { picture[at] = pixel; continue; }
    // Alpha blending: red and blue at once, then green.
    const below = picture[at], part = alpha + 1, rest = 256 - part;
    const ends = (((pixel & 0xff00ff) * part + (below & 0xff00ff) * rest) / 256) & 0xff00ff;
    const green = (((pixel & 0xff00) * part + (below & 0xff00) * rest) / 256) & 0xff00;
    picture[at] = (ends | green | 0xff000000) >>> 0;
  }
};
const rampAt = (share) => {
  const stops = RAMPS[+dark.matches], place = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const from = Math.min(stops.length - 2, Math.floor(place));
  const part = (stop, i) => parseInt(stops[stop].slice(1 + 2 * i, 3 + 2 * i), 16);
  const mixed = [0, 1, 2].map((i) => Math.round(part(from, i) + (place - from) * (part(from + 1, i) - part(from, i))));
  return `rgb(${mixed.join(",")})`;
};

// Numbers are binned between their 2nd and 98th percentile, so that outliers do not make all others pale.
const rangeOf = (numbers) => {
  const known = numbers.filter((number) => !Number.isNaN(number)).sort();
  if (!known.length) return [0, 0];
  return [0.02, 0.98].map((share) => known[Math.round(share * (known.length - 1))]);
};
const kindsOf = () => {
  if (!column) return new Int32Array(graphs);
  if (column.codes) return column.codes;
  const [low, high] = (column.range = rangeOf(column.numbers));
  return Int32Array.from(column.numbers, (number) =>
    Number.isNaN(number) ? -1 : Math.max(0, Math.min(BINS, Math.round((BINS * (number - low)) / (high - low || 1)))));
};
let kinds = kindsOf();

const radiusOf = () => {
  const base = graphs > 5000 ? 2.2 : graphs > 1000 ? 3 : 4.5;
  const room = Math.max(0.65, Math.min(1, Math.min(view.width, view.height) / 600));
  return Math.round(2 * Math.min(9, base * room * view.zoom ** 0.35)) / 2;
};
const isFaint = (graph) => (chosen.size ? !chosen.has(graph) : only !== null && kinds[graph] !== only);

let canvas = null; // the pixels of the map
const paint = () => {
  const ratio = map.width / view.width, radius = radiusOf(), scale = scaleOf() * ratio;
  const wide = map.width, high = map.height;
  if (!canvas || canvas.width !== wide || canvas.height !== high) canvas = pen.createImageData(wide, high);
  const picture = new Uint32Array(canvas.data.buffer);
  const page = element("canvas", { width: 1, height: 1 });
  Object.assign(page.getContext("2d", { willReadFrequently: true }), { fillStyle: themed("--page") }).fillRect(0, 0, 1, 1);
  picture.fill(pixelsOf(page)[0]);
  const passes = chosen.size || only !== null ? [true, false] : [false];
  for (const faint of passes) {
    for (let graph = 0; graph < graphs; graph++) {
      if (passes.length > 1 && isFaint(graph) !== faint) continue;
      const x = (places[2 * graph] - view.x) * scale + wide / 2;
      const y = (places[2 * graph + 1] - view.y) * scale + high / 2;
      // Marks that the edge would cut are left out.
      const mark = markOf(kinds[graph], radius, ratio, faint), half = mark.side / 2 + 1;
      if (x > half && y > half && x < wide - half && y < high - half) stamp(picture, wide, mark, x, y);
    }
  }
  pen.putImageData(canvas, 0, 0);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  for (const graph of outliers) if (!isFaint(graph)) ring(graph, radius + 2, 1.2, "--warn");
  if (current >= 0) {
    const end = (current + 1) * data.k;
    for (let i = current * data.k; i < end; i++) ring(neighbours[i], radius + 2.5, 1.4);
    ring(current, radius + 4, 3);
  }
  if (pointed >= 0) ring(pointed, radius + 3, 2);
  if (path.length > 1) {
    pen.beginPath();
    polygon(pen, path);
    pen.fillStyle = pen.strokeStyle = themed("--accent");
    pen.lineWidth = 1.5;
    pen.stroke();
    pen.globalAlpha = 0.12;
    pen.fill();
    pen.globalAlpha = 1;
  }
};
const ring = (graph, radius, width, colour = "--ink") => {
  pen.beginPath();
  pen.arc(...toScreen(graph), radius, 0, 2 * Math.PI);
  pen.lineWidth = width;
  pen.strokeStyle = themed(colour);
  pen.stroke();
};

// Zoom and pan.
const zoomBy = (factor, x = view.width / 2, y = view.height / 2) => {
  const before = scaleOf();
  view.zoom = Math.max(0.5, Math.min(400, view.zoom * factor));
  const after = scaleOf();
  view.x += (x - view.width / 2) * (1 / before - 1 / after);
  view.y += (y - view.height / 2) * (1 / before - 1 / after);
  hideHover();
  redraw();
};
const panBy = (dx, dy) => {
  view.x -= dx / scaleOf();
  view.y -= dy / scaleOf();
  redraw();
};
const fit = () => { Object.assign(view, { x: 0.5, y: 0.5, zoom: 1 }); hideHover(); redraw(); };
const reveal = (graph) => {
  const [x, y] = toScreen(graph);
  if (x > 20 && y > 20 && x < view.width - 20 && y < view.height - 20) return;
  view.x = places[2 * graph];
  view.y = places[2 * graph + 1];
};

// The nearest graph within `reach` pixels, by a search over all of them.
const graphAt = (x, y, reach) => {
  const scale = scaleOf();
  const u = (x - view.width / 2) / scale + view.x, v = (y - view.height / 2) / scale + view.y;
  let best = -1, least = (reach / scale) ** 2;
  for (let graph = 0; graph < graphs; graph++) {
    const far = (places[2 * graph] - u) ** 2 + (places[2 * graph + 1] - v) ** 2;
    if (far <= least && !(only !== null && isFaint(graph))) { best = graph; least = far; }
  }
  return best;
};
const hideHover = () => { pointed = -1; hover.hidden = true; map.classList.remove("pointing"); };
const showHover = (graph) => {
  if (graph === pointed) return;
  hideHover();
  pointed = graph;
  redraw();
  if (graph < 0) return;
  map.classList.add("pointing");
  hover.replaceChildren(pictureOf(graph, 186), element("strong", {}, String(ids[graph])), ...factsOf(graph, 3));
  hover.hidden = false;
  const [x, y] = toScreen(graph), tall = hover.offsetHeight, wide = hover.offsetWidth;
  hover.style.left = `${Math.max(4, x + 16 + wide < view.width ? x + 16 : x - 16 - wide)}px`;
  hover.style.top = `${Math.max(4, Math.min(view.height - tall - 4, y - tall / 2))}px`;
};
const factsOf = (graph, most = Infinity) => {
  // The current colouring first, then the others in their order.
  const shown = [column, ...columns.filter((other) => other !== column)].filter(Boolean).slice(0, most);
  if (!shown.length) return [];
  return [element("dl", {}, ...shown.map((entry) =>
    element("div", {}, element("dt", {}, entry.title), element("dd", {}, valueOf(entry, graph)))))];
};
const announce = (text) => { byId("status").textContent = text; };
const describe = (graph) =>
  [`graph ${ids[graph]}`, ...columns.slice(0, 3).map((entry) => `${entry.title} ${valueOf(entry, graph)}`)].join(", ");

// Show one graph in the panel, with the graphs most similar to it.
const show = (graph) => {
  current = graph;
  reveal(graph);
  const list = element("ol");
  for (let rank = 0; rank < data.k; rank++) {
    const other = neighbours[graph * data.k + rank];
    const distance = distances[graph * data.k + rank];
    const value = column ? `${column.title} ${valueOf(column, other)}, ` : "";
    const button = element("button", { type: "button" }, pictureOf(other, 140),
      element("span", { className: "id" }, String(ids[other])),
      element("span", { className: "far" }, `${value}distance ${formatNumber(distance < 1e-5 ? 0 : distance)}`));
    button.addEventListener("click", () => { show(other); byId("current").querySelector("h2").focus(); });
    list.append(element("li", {}, button));
  }
  const key = keyOf(graph);
  byId("current").replaceChildren(
    element("h2", { tabIndex: -1 }, String(ids[graph])),
    ...(outliers.has(graph) ? [element("p", { className: "flag" }, "Outlier: unusually far from its nearest graphs")] : []),
    pictureOf(graph, 300), ...(key ? [key] : []), ...smilesOf(graph), ...factsOf(graph),
    ...(data.k ? [element("h3", {}, `${data.k} most similar graphs`), list] : []));
  panel.scrollTop = 0;
  announce(describe(graph));
  redraw();
};

// The SMILES of a molecule, with a button that copies it.
const smilesOf = (graph) => {
  if (!data.smiles || !data.smiles[graph]) return [];
  const text = element("code", { tabIndex: 0 }, data.smiles[graph]);
  const button = element("button", { type: "button" }, "Copy SMILES");
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(text);
    let copied = false;
    try { await navigator.clipboard.writeText(data.smiles[graph]); copied = true; } catch { copied = document.execCommand("copy"); }
    button.textContent = copied ? "Copied" : "Press Ctrl+C";
    announce(button.textContent);
    setTimeout(() => { button.textContent = "Copy SMILES"; }, 2000);
  });
  return [element("p", { className: "smiles" }, text, button)];
};

// The selection, and how the current column is distributed in it.
const summaryOf = (some) => {
  if (!column) return [];
  if (column.codes) {
    const counts = new Map();
    for (const graph of some) counts.set(column.codes[graph], (counts.get(column.codes[graph]) || 0) + 1);
    const most = [...counts].sort((a, b) => b[1] - a[1]);
    const rows = most.slice(0, 12).map(([code, count]) => [column.names[code], `${formatNumber(count)} (${Math.round((100 * count) / some.size)} %)`]);
    if (most.length > 12) rows.push([`${most.length - 12} more`, formatNumber(most.slice(12).reduce((sum, entry) => sum + entry[1], 0))]);
    return rows;
  }
  const known = [...some].map((graph) => column.numbers[graph]).filter((number) => !Number.isNaN(number)).sort((a, b) => a - b);
  if (!known.length) return [];
  return [["least", known[0]], ["median", known[known.length >> 1]], ["most", known[known.length - 1]]].map(([name, number]) => [name, formatNumber(number)]);
};
const choose = (some) => {
  chosen = some;
  byId("chosen").hidden = !chosen.size;
  byId("counts").replaceChildren(
    ...(chosen.size && column ? [element("dt", { className: "title" }, column.title)] : []),
    ...(chosen.size ? summaryOf(chosen) : []).map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  byId("count").textContent = `${formatNumber(chosen.size)} ${chosen.size === 1 ? "graph" : "graphs"} selected`;
  if (chosen.size) announce(byId("count").textContent);
  redraw();
};
const isInside = (x, y, corners) => {
  let inside = false;
  for (let i = 0, j = corners.length - 1; i < corners.length; j = i++) {
    const [a, b] = corners[i], [c, d] = corners[j];
    if (b > y !== d > y && x < ((c - a) * (y - b)) / (d - b) + a) inside = !inside;
  }
  return inside;
};
const closeLasso = (keep) => {
  const some = new Set(keep ? chosen : []);
  for (let graph = 0; graph < graphs && path.length > 2; graph++) {
    if (isInside(...toScreen(graph), path)) some.add(graph);
  }
  path = [];
  choose(some);
};
const saveIds = () => {
  const rows = ["id", ...[...chosen].sort((a, b) => a - b).map((graph) => cell(ids[graph]))];
  const url = URL.createObjectURL(new Blob([`${rows.join("\r\n")}\r\n`], { type: "text/csv" }));
  const name = data.title.replace(/[^\w-]+/g, "-").replace(/^-+|-+$/g, "") || "graphs";
  element("a", { href: url, download: `${name}-selection.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
};
const setLasso = (on) => {
  lassoing = on;
  byId("lasso").setAttribute("aria-pressed", on);
  byId("move").setAttribute("aria-pressed", !on);
  map.classList.toggle("lasso", on);
};

// Pointer input: mouse, pen and fingers.
const fingers = new Map();
let travelled = 0;
let drawing = false;
map.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  map.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
  if (fingers.size === 1) {
    travelled = 0;
    drawing = lassoing || event.shiftKey;
    path = drawing ? [[event.offsetX, event.offsetY]] : [];
  } else {
    drawing = false;
    path = [];
  }
});
map.addEventListener("pointermove", (event) => {
  const before = fingers.get(event.pointerId), now = [event.offsetX, event.offsetY];
  if (!before) {
    if (event.pointerType === "mouse") showHover(graphAt(...now, 14));
    return;
  }
  const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
  travelled += Math.hypot(dx, dy);
  fingers.set(event.pointerId, now);
  hideHover();
  if (drawing) { path.push(now); redraw(); return; }
  if (fingers.size === 1) {
    map.classList.add("dragging");
    panBy(dx, dy);
    return;
  }
  const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
  const apart = (place) => Math.hypot(place[0] - other[0], place[1] - other[1]) || 1;
  panBy(dx / 2, dy / 2);
  zoomBy(apart(now) / apart(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
});
const lift = (event) => {
  if (!fingers.delete(event.pointerId)) return;
  map.classList.remove("dragging");
  if (fingers.size) { travelled = Infinity; return; }
  if (event.type === "pointerup" && travelled < 6) {
    path = [];
    const graph = graphAt(event.offsetX, event.offsetY, event.pointerType === "mouse" ? 14 : 24);
    if (graph >= 0) show(graph);
  } else if (drawing) closeLasso(event.shiftKey && lassoing);
  redraw();
};
map.addEventListener("pointerup", lift);
map.addEventListener("pointercancel", lift);
map.addEventListener("pointerleave", () => { hideHover(); redraw(); });
map.addEventListener("wheel", (event) => {
  event.preventDefault();
  const step = event.deltaMode === 1 ? 24 * event.deltaY : event.deltaY;
  zoomBy(Math.exp(-step * (event.ctrlKey ? 0.01 : 0.0015)), event.offsetX, event.offsetY);
}, { passive: false });
map.addEventListener("dblclick", (event) => zoomBy(2, event.offsetX, event.offsetY));

// Arrow keys go to the nearest graph in that direction; sideways distance counts twice.
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const stepTo = ([dx, dy]) => {
  if (current < 0) { show(graphAt(view.width / 2, view.height / 2, Infinity)); return; }
  let best = -1, least = Infinity;
  for (let graph = 0; graph < graphs; graph++) {
    const x = places[2 * graph] - places[2 * current], y = places[2 * graph + 1] - places[2 * current + 1];
    const ahead = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
    if (ahead <= 0 || aside > ahead) continue;
    const cost = ahead + 2 * aside;
    if (cost < least) { best = graph; least = cost; }
  }
  if (best >= 0) show(best);
  else announce("no graph further in this direction");
};
map.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !graphs) return;
  const arrow = ARROWS[event.key];
  if (arrow && event.shiftKey) panBy(-60 * arrow[0], -60 * arrow[1]);
  else if (arrow) stepTo(arrow);
  else if (event.key === "+" || event.key === "=") zoomBy(1.4);
  else if (event.key === "-") zoomBy(1 / 1.4);
  else if (event.key === "0") fit();
  else if (event.key === "Escape") { setLasso(false); choose(new Set()); hideHover(); }
  else if (event.key === "Enter" && current >= 0) { const first = panel.querySelector("ol button"); if (first) first.focus(); }
  else if (event.key === " " && current >= 0) {
    const some = new Set(chosen);
    if (!some.delete(current)) some.add(current);
    choose(some);
  } else return;
  event.preventDefault();
});
panel.addEventListener("keydown", (event) => { if (event.key === "Escape") map.focus(); });

// The toolbar.
for (const [name, act] of Object.entries({
  closer: () => zoomBy(1.5), farther: () => zoomBy(1 / 1.5), fit, save: saveIds, clear: () => choose(new Set()),
  move: () => setLasso(false), lasso: () => setLasso(true),
})) byId(name).addEventListener("click", act);
search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  const groups = [[], [], []]; // equal to it, starting with it, containing it
  for (let graph = 0; wanted && graph < graphs; graph++) {
    const text = String(ids[graph]).toLowerCase();
    if (text === wanted) groups[0].push(graph);
    else if (text.startsWith(wanted)) groups[1].push(graph);
    else if (text.includes(wanted)) groups[2].push(graph);
  }
  const hits = groups.flat();
  const pick = (graph) => { results.hidden = true; show(graph); map.focus(); };
  results.replaceChildren(...hits.slice(0, 30).map((graph) => {
    const button = element("button", { type: "button" }, String(ids[graph]));
    button.addEventListener("click", () => pick(graph));
    return element("li", {}, button);
  }));
  const found = hits.length === 1 ? "1 graph" : `${formatNumber(hits.length)} graphs`;
  const first = hits.length > 30 ? ", the first 30:" : ":";
  results.prepend(element("li", { className: "quiet" }, hits.length ? found + first : "no matching id"));
  results.hidden = !wanted;
  announce(wanted ? `${formatNumber(hits.length)} results` : "");
});
search.addEventListener("keydown", (event) => {
  const first = results.querySelector("button");
  if (event.key === "Enter" && first) first.click();
  if (event.key === "ArrowDown" && first) { first.focus(); event.preventDefault(); }
  if (event.key === "Escape") results.hidden = true;
});
document.addEventListener("pointerdown", (event) => { if (!event.target.closest(".search")) results.hidden = true; });

// Colouring and its legend.
const drawLegend = () => {
  const legend = byId("legend");
  legend.replaceChildren();
  if (outliers.size) {
    legend.append(element("div", { className: "scale" }, element("span", { className: "ring" }), `outlier (${formatNumber(outliers.size)})`));
  }
  if (!column) return;
  if (!column.codes) {
    const ramp = element("canvas", { className: "ramp", width: 120, height: 12 });
    const p = ramp.getContext("2d");
    for (let x = 0; x < 120; x++) { p.fillStyle = rampAt(x / 119); p.fillRect(x, 0, 1, 12); }
    const [low, high] = column.range.map(formatNumber);
    legend.append(element("div", { className: "scale" }, `${low} or less`, ramp, `${high} or more`));
    return;
  }
  const counts = new Uint32Array(column.names.length);
  for (const code of column.codes) counts[code]++;
  column.names.slice(0, 24).forEach((name, code) => {
    const picture = drawMark(code, 5, 2);
    picture.style.width = `${picture.width / 2}px`;
    const button = element("button", { type: "button" }, picture, `${name} (${formatNumber(counts[code])})`);
    button.setAttribute("aria-pressed", only === code);
    button.addEventListener("click", () => { only = only === code ? null : code; drawLegend(); redraw(); });
    legend.append(button);
  });
  if (column.names.length > 24) legend.append(element("span", { className: "quiet" }, `and ${column.names.length - 24} more`));
};
const colourBy = (position) => {
  column = columns[position];
  only = null;
  kinds = kindsOf();
  marks = new Map();
  drawLegend();
  if (current >= 0) show(current);
  choose(chosen);
};
const colour = byId("colour");
columns.forEach((entry, position) => colour.append(element("option", { value: position }, entry.title)));
colour.addEventListener("change", () => colourBy(Number(colour.value)));
colour.disabled = !columns.length;

const resize = () => {
  const ratio = Math.min(3, devicePixelRatio || 1);
  view.width = map.clientWidth || 1;
  view.height = map.clientHeight || 1;
  map.width = Math.round(view.width * ratio);
  map.height = Math.round(view.height * ratio);
  marks = new Map();
  paint();
};
new ResizeObserver(resize).observe(map);
dark.addEventListener("change", () => { marks = new Map(); drawLegend(); if (current >= 0) show(current); redraw(); });
resize();
drawLegend();
