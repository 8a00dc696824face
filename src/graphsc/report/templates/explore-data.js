// The data of the page: JSON that is never executed, with flat arrays as base64.
const data = JSON.parse(document.getElementById("data").textContent);

const unpack = (text, Kind) => {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Kind(bytes.buffer);
};

const starts = (counts) => {
  const offsets = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) offsets[i + 1] = offsets[i] + counts[i];
  return offsets;
};

const ids = data.ids;
const graphs = ids.length;
const places = unpack(data.places, Float32Array);
const neighbours = unpack(data.neighbours, Uint32Array);
const distances = unpack(data.distances, Float32Array);
const outliers = new Set(data.outliers);
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

const formatNumber = (number) => (Number.isInteger(number) ? number.toLocaleString("en") : String(+number.toPrecision(4)));

// The value of a graph in a column, as text.
const valueOf = (column, graph) => {
  if (column.codes) return column.names[column.codes[graph]];
  return Number.isNaN(column.numbers[graph]) ? "missing" : formatNumber(column.numbers[graph]);
};

// A new element with properties and children. Strings become text nodes, so markup in them is never parsed.
const element = (tag, properties = {}, ...children) => {
  const created = Object.assign(document.createElement(tag), properties);
  created.append(...children);
  return created;
};

// A CSV cell that is safe in a spreadsheet: text that would be read as a formula gets an apostrophe.
const cell = (value) => {
  const text = String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
