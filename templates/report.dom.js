"use strict";
// The data, elements for it, and numbers as text. Text of the library becomes a text node or an
// attribute's value; it is never parsed as HTML.

const data = JSON.parse(document.getElementById("data").textContent);

function byId(id) {
  return document.getElementById(id);
}

// make("p", {class: "note", onclick: f}, "text", element, ...): an element.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element[name] = value;
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const WHOLE = new Intl.NumberFormat("en-US");
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

function whole(number) {
  return WHOLE.format(number);
}

function exact(nbytes) {
  return nbytes === 1 ? "1 byte" : `${whole(nbytes)} bytes`;
}

function short(nbytes) {
  let unit = 0;
  while (nbytes >= 1000 && unit < UNITS.length - 1) {
    nbytes /= 1024;
    unit += 1;
  }
  return `${unit ? nbytes.toPrecision(3) : nbytes} ${UNITS[unit]}`;
}

function hex(number) {
  return `0x${number.toString(16)}`;
}

function percent(part, all) {
  const share = all ? (100 * part) / all : 0;
  return share > 0 && share < 0.1 ? "< 0.1 %" : `${share.toFixed(1)} %`;
}

function plural(count, word) {
  return `${whole(count)} ${word}${count === 1 ? "" : "s"}`;
}

// The children of an element that shows a name: it may break after a separator, rarely elsewhere.
const WIDEST_PART = 32; // characters

function makeName(tag, attributes, name) {
  const parts = name.match(/[^_.:/ -]*[_.:/ -]*/g).filter(Boolean);
  const element = make(tag, { ...attributes, class: `${attributes.class ?? ""} mono name` },
    ...parts.flatMap((part) => [part, make("wbr")]));
  const widest = parts.reduce((most, part) => Math.max(most, part.length), 0);
  element.style.minWidth = `${Math.min(widest, WIDEST_PART)}ch`;
  return element;
}

// A table with a caption; a column is {name, number, cell(row) -> text or element}.
function table(caption, columns, rows) {
  const head = columns.map((c) => make("th", { scope: "col", class: c.number && "number" }, c.name));
  const body = rows.map((row) =>
    make("tr", {}, ...columns.map((c) => make("td", { class: c.number && "number" }, c.cell(row)))),
  );
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, ...head)),
      make("tbody", {}, ...body)),
  );
}

function fillFacts(list, facts) {
  for (const [name, value] of facts) {
    const values = Array.isArray(value) ? value : [value];
    list.append(make("dt", {}, name));
    const shown = values.length ? values : [make("span", { class: "quiet" }, "none")];
    list.append(...shown.map((text) => make("dd", {}, text)));
  }
}

// ---- regions, modules, and the selection

const regions = data.regions.map(([name, kind, role, parent, offset, nbytes, about, entry], index) =>
  ({ index, name, kind, role, parent, offset, nbytes, about, entry, children: [] }));
regions.slice(1).forEach((region) => regions[region.parent].children.push(region));

const regionOfEntry = new Map(regions.filter((r) => r.entry !== null).map((r) => [r.entry, r]));
const modules = data.modules.map(
  ([typeKey, fmt, nbytes, imports, functions, loadable, tensors, signatures, row], index) =>
    ({ index, typeKey, fmt, nbytes, imports, functions, loadable, tensors, row, signatures,
      region: regionOfEntry.get(data.row_entries[row]) ?? null }));
const moduleOfRegion = new Map(modules.filter((m) => m.region).map((m) => [m.region, m]));

const listeners = [];

// Select a region, or a module with the region around it, and update all views.
function choose(region, module = moduleOfRegion.get(region) ?? null) {
  listeners.forEach((listener) => listener(region, module));
  byId("chosen").textContent =
    `${region.name}, ${region.kind}, ${exact(region.nbytes)} at ${hex(region.offset)}`;
}

function chooseModule(module) {
  choose(module.region ?? regions[0], module);
}
