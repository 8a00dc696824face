// One graph as a small drawing: a structural formula, nodes and edges, a user's own SVG, or a sentence.
const dark = matchMedia("(prefers-color-scheme: dark)");
const SHADES = {
  N: ["#1f5fbf", "#7db0ff"], O: ["#c5221f", "#ff8a80"], S: ["#8a6500", "#e8c547"], P: ["#a85100", "#ffb26b"],
  F: ["#1a7a3c", "#7fdc9c"], Cl: ["#1a7a3c", "#7fdc9c"], Br: ["#8c3b2a", "#e59b86"], I: ["#6a3d9a", "#c6a5ee"],
};
const ATOM_TEXT = /^([A-Z][a-z]?|\*)(H[₀-₉]*)?(.*)$/;

const themed = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// The palette is made for a white page; in dark mode colours are mixed with white, black most of all.
const colourOf = (code) => {
  const colour = data.palette[code % data.palette.length];
  if (!dark.matches) return colour;
  const share = colour === "#000000" ? 0.9 : 0.3;
  const parts = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  return `rgb(${parts.map((part) => Math.round(part + share * (255 - part))).join(",")})`;
};

const isDrawn = (graph) => drawings && drawings.nodes[graph + 1] > drawings.nodes[graph];

// The element that shows a graph, `width` pixels wide.
const pictureOf = (graph, width) => {
  const svg = drawings && drawings.svgs[graph];
  if (svg) return element("img", { className: "drawing", alt: "", src: `data:image/svg+xml;base64,${svg}` });
  if (isDrawn(graph)) {
    const canvas = element("canvas", { className: "drawing" });
    drawGraph(canvas, graph, width, Math.round(width * 0.75));
    return canvas;
  }
  const size = sizes && `${formatNumber(sizes[2 * graph])} nodes, ${formatNumber(sizes[2 * graph + 1])} edges`;
  if (!drawings) return "";
  return element("span", { className: "undrawn" }, `too large to draw${size ? `: ${size}` : ""}`);
};

const drawGraph = (canvas, graph, width, height) => {
  const ratio = Math.min(3, devicePixelRatio || 1);
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const first = drawings.nodes[graph], last = drawings.nodes[graph + 1];
  const from = drawings.lines[graph], to = drawings.lines[graph + 1];
  let low = [255, 255], high = [0, 0];
  for (let i = first; i < last; i++) for (const axis of [0, 1]) {
    low[axis] = Math.min(low[axis], drawings.places[2 * i + axis]);
    high[axis] = Math.max(high[axis], drawings.places[2 * i + axis]);
  }
  const pad = drawings.structures ? width / 9 : width / 14;
  let length = 0;
  for (let e = from; e < to; e++) {
    const a = 2 * (first + drawings.edges[2 * e]), b = 2 * (first + drawings.edges[2 * e + 1]);
    length += Math.hypot(drawings.places[a] - drawings.places[b], drawings.places[a + 1] - drawings.places[b + 1]) / (to - from);
  }
  // The last limit keeps a graph of two nodes from filling the card.
  const scale = Math.min((width - 2 * pad) / (high[0] - low[0] || 1), (height - 2 * pad) / (high[1] - low[1] || 1),
    (width / 6) / (length || 255));
  const at = (node) => [0, 1].map((axis) =>
    (axis ? height : width) / 2 + scale * (drawings.places[2 * (first + node) + axis] - (low[axis] + high[axis]) / 2));
  const spots = Array.from({ length: last - first }, (_, node) => at(node));
  const lines = Array.from({ length: to - from }, (_, e) =>
    [drawings.edges[2 * (from + e)], drawings.edges[2 * (from + e) + 1], drawings.kinds[from + e]]);
  (drawings.structures ? drawFormula : drawNodes)(pen, first, spots, lines, scale * length);
};

const drawNodes = (pen, first, spots, lines, length) => {
  pen.strokeStyle = dark.matches ? "#8b95a1" : "#8a929b";
  pen.lineWidth = spots.length > 60 ? 0.8 : 1.2;
  pen.beginPath();
  for (const [a, b] of lines) {
    pen.moveTo(...spots[a]);
    pen.lineTo(...spots[b]);
  }
  pen.stroke();
  const radius = Math.max(1.6, Math.min(5, length ? length * 0.28 : 5, 26 / Math.sqrt(spots.length)));
  spots.forEach((place, node) => {
    pen.fillStyle = colourOf(drawings.codes[first + node]);
    pen.beginPath();
    pen.arc(...place, radius, 0, 2 * Math.PI);
    pen.fill();
  });
};

const drawFormula = (pen, first, spots, lines, length) => {
  const ink = themed("--ink"), size = Math.max(6, Math.min(14, 0.5 * (length || 24)));
  pen.strokeStyle = ink;
  pen.lineWidth = Math.max(0.8, Math.min(1.6, 0.06 * (length || 24)));
  pen.lineCap = "round";
  const texts = spots.map((_, node) => drawings.texts[drawings.codes[first + node]]);
  const beside = spots.map(() => []);
  for (const [a, b, kind] of lines) {
    beside[a].push(spots[b][0]);
    beside[b].push(spots[a][0]);
    const [x, y] = spots[a], [u, v] = spots[b], far = Math.hypot(u - x, v - y) || 1;
    const across = [(y - v) / far, (u - x) / far], gap = 0.16 * far;
    const line = (side, shorter, dashes = []) => {
      const [dx, dy] = [across[0] * side * gap, across[1] * side * gap];
      const [ex, ey] = [(u - x) * shorter, (v - y) * shorter];
      pen.setLineDash(dashes);
      pen.beginPath();
      pen.moveTo(x + dx + ex, y + dy + ey);
      pen.lineTo(u + dx - ex, v + dy - ey);
      pen.stroke();
      pen.setLineDash([]);
    };
    if (kind === 1) { line(0.5, 0); line(-0.5, 0); } else line(0, 0);
    if (kind === 2) line(-1, 0.14);
    if (kind === 3) line(1, 0.14);
    if (kind === 4) { line(1, 0.1); line(-1, 0.1); }
    if (kind === 5) line(1, 0.14, [2, 2]);
  }
  pen.font = `600 ${size}px system-ui, sans-serif`;
  pen.textBaseline = "middle";
  spots.forEach(([x, y], node) => {
    if (!texts[node]) return;
    const [, symbol, hydrogens = "", rest] = ATOM_TEXT.exec(texts[node]) || [null, texts[node], "", ""];
    const half = pen.measureText(symbol).width / 2;
    const mean = beside[node].reduce((sum, other) => sum + other, 0) / (beside[node].length || 1);
    const leftwards = hydrogens && beside[node].length > 0 && mean > x + 1;
    const text = leftwards ? hydrogens + symbol + rest : symbol + hydrogens + rest;
    const wide = pen.measureText(text).width;
    const start = leftwards ? x + half - wide + pen.measureText(rest).width : x - half;
    pen.fillStyle = themed("--card");
    pen.fillRect(start - 1, y - 0.55 * size, wide + 2, 1.1 * size);
    pen.fillStyle = SHADES[symbol] ? SHADES[symbol][+dark.matches] : ink;
    pen.fillText(text, start, y + 0.5);
  });
};

// The legend of a drawing of coloured dots.
const keyOf = (graph) => {
  if (!isDrawn(graph) || drawings.structures || !drawings.caption) return null;
  const seen = new Set(drawings.codes.subarray(drawings.nodes[graph], drawings.nodes[graph + 1]));
  const line = element("p", { className: "key" }, `${drawings.caption}: `);
  for (const code of [...seen].sort((a, b) => a - b)) {
    const dot = element("span", {}, "●");
    dot.style.color = colourOf(code);
    line.append(element("span", {}, dot, ` ${drawings.texts[code]}`), " ");
  }
  return line;
};
