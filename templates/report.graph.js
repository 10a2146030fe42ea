// The graph of a model: a row for each operator, and lanes for the values between them.

const LANE = 14; // px
const GRAPH_ROW = 34; // px, as in the style sheet
const MOST_LANES = 24;
const PICTURE = "http://www.w3.org/2000/svg";

function draw(tag, attributes) {
  const element = document.createElementNS(PICTURE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function flopsText(flops) {
  if (!flops) return "";
  const units = ["", "k", "M", "G", "T"];
  let unit = 0;
  while (flops >= 999.5 && unit < units.length - 1) {
    flops /= 1000;
    unit += 1;
  }
  return `${Number(flops.toPrecision(3))} ${units[unit]}FLOP`;
}

// The same colour for the same kind, from the most frequent on.
function colourOf(kind) {
  if (kind === "input" || kind === "output") return "end";
  const index = data.graph.operators.findIndex(([op]) => op === kind);
  return `kind${Math.min(index, 6)}`;
}

function makeLanes(row, lanes) {
  const middle = GRAPH_ROW / 2;
  const at = (lane) => LANE * (Math.min(lane, MOST_LANES - 1) + 0.75);
  const picture = draw("svg", { width: LANE * (lanes + 0.5), height: GRAPH_ROW,
    "aria-hidden": "true", class: "lanes" });
  const line = (path) => picture.append(draw("path", { d: path, class: "lane" }));
  row.passes.forEach((lane) => line(`M${at(lane)} 0V${GRAPH_ROW}`));
  const x = at(row.lane);
  row.ends.forEach((lane) =>
    line(`M${at(lane)} 0C${at(lane)} ${middle} ${x} ${middle / 3} ${x} ${middle}`));
  row.begins.forEach((lane) => line(`M${x} ${middle}C${x} ${GRAPH_ROW - middle / 3} ` +
    `${at(lane)} ${middle} ${at(lane)} ${GRAPH_ROW}`));
  picture.append(draw("circle", { cx: x, cy: middle, r: 4.5, class: `dot ${colourOf(row.kind)}` }));
  return picture;
}

function makeValues(title, values) {
  if (!values.length) return null;
  return make("div", {}, make("dt", {}, title), ...values.map(([name, type]) =>
    make("dd", {}, make("span", { class: "mono" }, name), " ",
      make("span", { class: "quiet" }, type))));
}

function makeOperator(row, most, lanes) {
  const track = make("span", { class: "track" }, make("span", { class: "fill" }));
  track.firstChild.style.width = `${(100 * row.flops) / most}%`;
  const types = row.writes.map(([, type]) => type).join(", ") || (row.reads[0] ?? ["", ""])[1];
  const summary = make("summary", {}, makeLanes(row, lanes),
    make("span", { class: `badge ${colourOf(row.kind)}` }, row.kind || "operator"),
    make("span", { class: "mono title", title: row.name }, row.name),
    make("span", { class: "quiet type", title: types }, types),
    make("span", { class: "number" }, flopsText(row.flops)),
    row.flops ? track : make("span", {}));
  const facts = make("dl", { class: "rows" });
  if (row.function) fillFacts(facts, [["name", make("span", { class: "mono" }, row.name)]]);
  if (row.flops) fillFacts(facts, [["work", flopsText(row.flops)]]);
  [makeValues("reads", row.reads), makeValues("writes", row.writes)].forEach((list) =>
    list && facts.append(list));
  if (row.function) fillFacts(facts, [["function", make("span", { class: "mono" }, row.function)]]);
  if (row.drawing) fillFacts(facts, [["drawing", make("pre", {}, row.drawing)]]);
  return make("details", { class: "operator" }, summary, facts);
}

function allOperators() {
  const names = ["kind", "name", "function", "reads", "writes", "flops", "lane", "ends", "begins",
    "passes", "drawing"];
  return data.graph.rows.map((values) => {
    const row = Object.fromEntries(names.map((name, i) => [name, values[i]]));
    const words = [row.kind, row.name, row.function, ...row.reads.flat(), ...row.writes.flat()];
    return { ...row, text: words.join(" ").toLowerCase() };
  });
}

function startGraphSearch(rows) {
  const show = () => {
    const words = byId("graph-query").value.toLowerCase().split(/\s+/);
    let found = 0;
    rows.forEach(({ row, element }) => {
      element.hidden = !words.every((word) => row.text.includes(word));
      found += element.hidden ? 0 : 1;
    });
    byId("graph-count").textContent = `${whole(found)} of ${whole(rows.length)} rows`;
  };
  byId("graph-query").addEventListener("input", show);
  show();
}

function startGraph() {
  if (!data.graph) return false;
  const { operators, flops, work, folded } = data.graph;
  byId("graph-lead").textContent =
    `${work}. A line is a value, from the operator that makes it to the last one that reads it; ` +
    "weights have no line. A row opens.";
  byId("graph-kinds").append(table("Operators by kind", [
    { name: "Kind", cell: ([op]) => make("span", { class: `badge ${colourOf(op)}` }, op) },
    { name: "Number", number: true, cell: ([, count]) => whole(count) },
    { name: "FLOP", number: true, cell: ([, , of]) => flopsText(of) },
    { name: "Share", number: true, cell: ([, , of]) => (flops ? percent(of, flops) : "") },
  ], operators));
  const rows = allOperators();
  const most = rows.reduce((largest, row) => Math.max(largest, row.flops), 1);
  const lanes = Math.min(data.graph.lanes, MOST_LANES);
  const drawn = rows.map((row) => ({ row, element: makeOperator(row, most, lanes) }));
  byId("graph-rows").append(...drawn.map(({ element }) => element));
  startGraphSearch(drawn);
  const [summary, list] = byId("graph-folded").children;
  byId("graph-folded").hidden = !folded.length;
  summary.textContent = `Folded weights: ${whole(folded.length)}`;
  list.replaceWith(table("Weights that are not stored, or with other values", [
    { name: "Weight", cell: ([name]) => makeName("span", {}, name) },
    { name: "Reason", cell: ([, why]) => why },
  ], folded));
  return true;
}
