// Functions and weights: lists that are fast at any length.

const FUNCTIONS_AT_ONCE = 100;

function allFunctions() {
  const library = modules.find((m) => m.typeKey === "library") ?? null;
  const own = data.functions.map(([name, signature, doc, symbol, abi, gil, isOperator]) =>
    ({ name, signature, doc, symbol, abi, gil, isOperator, module: library }));
  const others = modules.filter((m) => m !== library).flatMap((module) =>
    module.functions.map((name, i) =>
      ({ name, signature: module.signatures[i], doc: "", symbol: "", abi: "", gil: null,
        isOperator: false, module })));
  return [...own, ...others].map((f) =>
    ({ ...f, text: `${f.name} ${f.signature ?? ""} ${f.doc}`.toLowerCase() }));
}

// A signature with the function's name in bold.
function makeSignature({ name, signature }) {
  const at = signature ? signature.indexOf(`${name}(`) : -1;
  if (at < 0) return make("code", {}, signature ?? make("b", {}, name));
  return make("code", {}, signature.slice(0, at), make("b", {}, name),
    signature.slice(at + name.length));
}

function makeFunction(f) {
  const facts = [f.name === data.entry ? "the entry" : "", f.abi,
    f.signature || !f.symbol ? "" : "no declaration", f.gil ? `GIL: ${f.gil}` : "",
    f.symbol ? `symbol ${f.symbol}` : ""].filter(Boolean).join(", ");
  const home = f.module && f.module.typeKey !== "library"
    ? make("button", { type: "button", class: "link", onclick: () => reveal(f.module) },
      `in ${f.module.typeKey}`)
    : null;
  return make("li", {}, makeSignature(f), f.doc ? make("p", { class: "doc" }, f.doc.trimEnd()) : null,
    make("p", { class: "quiet" }, facts, home));
}

function reveal(module) {
  chooseModule(module);
  byId("storage").scrollIntoView();
}

// The functions that a model calls are folded; a search finds them too.
function startOperators(operators) {
  const fold = byId("functions-operators");
  const [summary, list] = fold.children;
  summary.textContent = `${plural(operators.length, "function")} of the model's operators`;
  fold.addEventListener("toggle", () => {
    if (!list.children.length) list.append(...operators.map(makeFunction));
  });
  return (isShown) => { fold.hidden = !isShown || !operators.length; };
}

function startFunctions() {
  const functions = allFunctions();
  const others = functions.filter((f) => !f.isOperator);
  const showOperators = startOperators(functions.filter((f) => f.isOperator));
  const list = byId("functions-list");
  let limit = FUNCTIONS_AT_ONCE;
  const more = make("button", { type: "button", class: "more" }, `Show ${FUNCTIONS_AT_ONCE} more`);
  list.after(more);
  const draw = () => {
    const query = byId("functions-query").value.toLowerCase();
    const words = query.split(/\s+/);
    const found = functions.filter((f) => words.every((word) => f.text.includes(word)));
    const listed = query.trim() ? found : others;
    list.replaceChildren(...listed.slice(0, limit).map(makeFunction));
    more.hidden = listed.length <= limit;
    showOperators(!query.trim());
    byId("functions-count").textContent = `${whole(found.length)} of ${whole(functions.length)}`;
  };
  byId("functions-query").addEventListener("input", () => {
    limit = FUNCTIONS_AT_ONCE;
    draw();
  });
  more.addEventListener("click", () => {
    limit += FUNCTIONS_AT_ONCE;
    draw();
  });
  draw();
}

// ---- weights: only the visible rows exist

const ROW = 32; // px, as in the style sheet
const MARGIN = 8; // rows beyond either edge
const PRINTED = 300;

function allTensors() {
  const largest = data.tensors.reduce((most, tensor) => Math.max(most, tensor[3]), 1);
  return data.tensors.map(([name, dtype, shape, nbytes, module]) => {
    const size = shape.length ? shape.join(" \u00d7 ") : "scalar";
    return { name, dtype, shape: size, elements: shape.reduce((n, d) => n * d, 1), nbytes,
      share: nbytes / largest, module: modules[module],
      text: `${name} ${dtype} ${shape.join("x")} ${shape.join(",")} ${size}`.toLowerCase() };
  });
}

const COLUMNS = [
  { name: "Name", order: (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0) },
  { name: "Type", order: (a, b) => (a.dtype < b.dtype ? -1 : a.dtype > b.dtype ? 1 : 0) },
  { name: "Shape", order: (a, b) => b.elements - a.elements, wide: true },
  { name: "Bytes", order: (a, b) => b.nbytes - a.nbytes, number: true },
  { name: "", wide: true },
  { name: "Module", order: (a, b) => a.module.index - b.module.index, wide: true },
];

function makeRow(tensor, index) {
  const track = make("span", { class: "track" }, make("span", { class: "fill" }));
  track.firstChild.style.width = `${100 * tensor.share}%`;
  track.style.display = "block";
  const home = make("button", { type: "button", class: "link", onclick: () => reveal(tensor.module) },
    tensor.module.typeKey);
  const cell = (attributes, ...content) => make("div", { role: "cell", ...attributes }, ...content);
  const row = make("div", { role: "row", "aria-rowindex": index + 2 },
    cell({ class: "mono", title: tensor.name }, tensor.name), cell({}, tensor.dtype),
    cell({ class: "wide", title: tensor.shape }, tensor.shape),
    cell({ class: "number" }, whole(tensor.nbytes)),
    cell({ class: "wide", "aria-hidden": "true" }, track), cell({ class: "wide" }, home));
  row.style.top = `${index * ROW}px`;
  return row;
}

function makeHead(column, sort) {
  const head = make("div", { role: "columnheader",
    class: `${column.number ? "number" : ""} ${column.wide ? "wide" : ""}` });
  if (column.order) {
    head.append(make("button", { type: "button", onclick: () => sort(column) }, column.name));
  } else {
    head.setAttribute("aria-hidden", "true");
  }
  return head;
}

function makeList(tensors) {
  const space = make("div", { class: "space" });
  const sight = make("div", { class: "window", tabindex: "0", role: "rowgroup",
    "aria-label": "Tensors" }, space);
  let shown = tensors;
  let sorted = COLUMNS[3];
  let drawn = "";

  const draw = (start, end) => {
    const range = `${start}:${end}`;
    if (range === drawn) return;
    drawn = range;
    space.replaceChildren(...shown.slice(start, end).map((t, i) => makeRow(t, start + i)));
  };
  const drawInSight = () => {
    const first = Math.floor(sight.scrollTop / ROW) - MARGIN;
    const count = Math.ceil(sight.clientHeight / ROW) + 2 * MARGIN;
    draw(Math.max(0, first), Math.min(shown.length, first + count));
  };
  const update = (found) => {
    shown = [...found].sort(sorted.order);
    space.style.height = `${shown.length * ROW}px`;
    list.setAttribute("aria-rowcount", String(shown.length + 1));
    heads.forEach((head, i) => {
      if (COLUMNS[i].order) {
        const descends = COLUMNS[i].name === "Bytes" || COLUMNS[i].name === "Shape";
        const order = descends ? "descending" : "ascending";
        head.setAttribute("aria-sort", COLUMNS[i] === sorted ? order : "none");
        head.firstChild.textContent = COLUMNS[i].name +
          (COLUMNS[i] === sorted ? (descends ? " \u25be" : " \u25b4") : "");
      }
    });
    drawn = "";
    sight.scrollTop = 0;
    drawInSight();
  };
  const sort = (column) => {
    sorted = column;
    update(shown);
  };
  const heads = COLUMNS.map((column) => makeHead(column, sort));
  const list = make("div", { class: "list", role: "table", "aria-label": "Tensors" },
    make("div", { role: "rowgroup" }, make("div", { role: "row", class: "rowhead" }, ...heads)),
    sight);
  sight.addEventListener("scroll", () => requestAnimationFrame(drawInSight), { passive: true });
  window.addEventListener("resize", drawInSight);
  window.addEventListener("beforeprint", () => draw(0, PRINTED));
  window.addEventListener("afterprint", drawInSight);
  return { list, update };
}

function startWeights() {
  const tensors = allTensors();
  if (!tensors.length) return false;
  const most = Math.max(...data.dtypes.map((row) => row[2]), 1);
  for (const [dtype, count, nbytes] of data.dtypes) {
    const fill = make("span", { class: "fill" });
    fill.style.width = `${(100 * nbytes) / most}%`;
    byId("dtypes").append(make("li", {}, make("span", { class: "mono" }, dtype),
      make("span", { class: "track", "aria-hidden": "true" }, fill),
      make("span", {}, `${short(nbytes)} in ${plural(count, "tensor")}`)));
  }
  const { list, update } = makeList(tensors);
  byId("weights-table").append(list);
  const find = () => {
    const words = byId("weights-query").value.toLowerCase().split(/\s+/);
    const found = tensors.filter((t) => words.every((word) => t.text.includes(word)));
    const total = found.reduce((sum, t) => sum + t.nbytes, 0);
    const all = data.num_tensors > tensors.length
      ? `the ${whole(tensors.length)} largest of ${whole(data.num_tensors)}` : whole(tensors.length);
    byId("weights-count").textContent = `${whole(found.length)} of ${all}, ${short(total)}`;
    update(found);
  };
  byId("weights-query").addEventListener("input", find);
  find();
  return true;
}
