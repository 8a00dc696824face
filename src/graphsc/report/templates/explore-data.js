// The data of the page: JSON that was never run, with flat arrays as base64 inside it.
const data = JSON.parse(document.getElementById("data").textContent);

const unpack = (text, Kind) => {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Kind(bytes.buffer);
};

const starts = (counts) => {
  const found = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) found[i + 1] = found[i] + counts[i];
  return found;
};

const ids = data.ids;
const graphs = ids.length;
const places = unpack(data.places, Float32Array);
const neighbours = unpack(data.neighbours, Uint32Array);
const distances = unpack(data.distances, Float32Array);
const sizes = data.sizes && unpack(data.sizes, Uint32Array);
const columns = data.colourings.map((column) =>
  column.codes !== undefined
    ? { title: column.title, names: column.names, codes: unpack(column.codes, Uint16Array) }
    : { title: column.title, numbers: unpack(column.numbers, Float32Array) });
const drawings = data.drawings && {
  ...data.drawings,
  nodes: starts(unpack(data.drawings.nodes, Uint32Array)),
  lines: starts(unpack(data.drawings.lines, Uint32Array)),
  places: unpack(data.drawings.places, Uint8Array),
  codes: unpack(data.drawings.codes, Uint16Array),
  edges: unpack(data.drawings.edges, Uint8Array),
  kinds: unpack(data.drawings.kinds, Uint8Array),
};

const words = (number) => (Number.isInteger(number) ? number.toLocaleString("en") : String(+number.toPrecision(4)));

// What a column says of a graph.
const valueOf = (column, graph) => {
  if (column.codes) return column.names[column.codes[graph]];
  return Number.isNaN(column.numbers[graph]) ? "missing" : words(column.numbers[graph]);
};

// An element with its properties and children; texts become text, whatever is in them.
const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

// A cell as a spreadsheet may open it: what it would take for a formula gets an apostrophe before it.
const cell = (value) => {
  const text = String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
