// The rest of the page, and the start.

const PARTS = { findings: "Problems and notes", graph: "Graph", storage: "Storage",
  functions: "Functions", weights: "Weights", symbols: "Symbols", startup: "What a load does" };

function startHead() {
  byId("name").textContent = data.name;
  byId("path").textContent = data.path;
  startModel();
  for (const fact of [["size", exact(data.nbytes)], ...Object.entries(data.overview)]) {
    const group = make("div");
    fillFacts(group, [fact]);
    byId("overview").append(group);
  }
  byId("colophon").textContent =
    "Written by packer inspect from the bytes of the file, which was not executed. This page makes " +
    "no network requests.";
}

function startModel() {
  byId("model").hidden = !data.graph;
  if (!data.graph) return;
  const { signatures, work } = data.graph;
  byId("signatures").append(...signatures.map((signature) =>
    make("li", {}, makeSignature({ name: signature.split("(")[0], signature }))));
  byId("work").textContent = work;
}

function startFindings() {
  const makeFinding = (kind, text) =>
    make("p", { class: `finding ${kind}` },
      make("b", {}, kind === "problem" ? "Problem" : "Note"), make("span", {}, text));
  const list = byId("findings-list");
  list.append(...data.problems.map((text) => makeFinding("problem", text)));
  list.append(...data.notes.map((text) => makeFinding("note", text)));
  if (!list.children.length) list.append(make("p", { class: "quiet" }, "None."));
}

function startTheme() {
  const button = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  let isDark = system.matches;
  const show = () => button.setAttribute("aria-pressed", String(isDark));
  button.addEventListener("click", () => {
    isDark = !isDark;
    document.documentElement.style.colorScheme = isDark ? "dark" : "light";
    show();
  });
  system.addEventListener("change", () => {
    if (!document.documentElement.style.colorScheme) isDark = system.matches;
    show();
  });
  show();
}

// ---- the selected block

function makeHex(region) {
  const bytes = Uint8Array.from(atob(data.heads[region.index]), (c) => c.charCodeAt(0));
  if (!bytes.length) return null;
  const width = matchMedia("(max-width: 700px)").matches ? 8 : 16;
  const digits = Math.max(4, (region.offset + bytes.length).toString(16).length);
  const length = bytes.slice(0, 8).reduceRight((sum, byte) => sum * 256 + byte, 0);
  const keyEnd = region.entry === null ? 0 : Math.min(8 + length, bytes.length);
  const rows = [];
  for (let at = 0; at < bytes.length; at += width) {
    const part = [...bytes.slice(at, at + width)];
    const split = Math.max(0, Math.min(part.length, keyEnd - at));
    const both = (show, glue) => [
      make("span", { class: "key" }, part.slice(0, split).map(show).join(glue)),
      (split && split < part.length ? glue : "") + part.slice(split).map(show).join(glue)];
    rows.push(make("tr", {},
      make("th", { scope: "row" }, (region.offset + at).toString(16).padStart(digits, "0")),
      make("td", {}, ...both((byte) => byte.toString(16).padStart(2, "0"), " ")),
      make("td", {}, ...both((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : "\u00b7"), ""))));
  }
  const all = bytes.length === region.nbytes
    ? `All ${exact(region.nbytes)}.`
    : `The first ${whole(bytes.length)} of ${exact(region.nbytes)}; the page contains no more. ` +
      `All of them: xxd -s ${hex(region.offset)} -l ${region.nbytes} FILE`;
  const key = keyEnd ? "Underlined: the length and the key. " : "";
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Bytes" },
    make("table", { class: "hex" }, make("caption", {}, key + all), make("tbody", {}, ...rows)));
}

function makeChildren(region) {
  return table("Parts", [
    { name: "Name", cell: (r) => makeName("button",
      { type: "button", class: "link", onclick: () => choose(r) }, r.name) },
    { name: "Kind", cell: (r) => r.kind },
    { name: "Offset", number: true, cell: (r) => hex(r.offset) },
    { name: "Bytes", number: true, cell: (r) => whole(r.nbytes) },
    { name: "Share", number: true, cell: (r) => percent(r.nbytes, region.nbytes) },
  ], region.children);
}

function showDetails(region, module) {
  const facts = make("dl", { class: "rows" });
  const inBlob = module && module.region;
  const noEntry = module && !module.region;
  if (!noEntry) {
    fillFacts(facts, [
      ["offsets", `${hex(region.offset)} to ${hex(region.offset + region.nbytes)}`],
      ["size", `${exact(region.nbytes)}, ${percent(region.nbytes, data.nbytes)} of the file`],
    ]);
    if (region.role !== "loaded") fillFacts(facts, [["holds", MEANING[region.role] ?? region.role]]);
  }
  if (module) {
    const names = module.imports.slice(0, 50).map((i) => make("button",
      { type: "button", class: "link mono", onclick: () => chooseModule(modules[i]) },
      modules[i].typeKey));
    fillFacts(facts, [["module", `${module.typeKey}${module.fmt ? `, format ${module.fmt}` : ""}`],
      ["imports", names]]);
    if (module.functions.length) {
      fillFacts(facts, [["functions", module.functions.slice(0, 50).join(", ")]]);
    }
    if (module.tensors) fillFacts(facts, [["tensors", whole(module.tensors)]]);
    if (!module.loadable) fillFacts(facts, [["loader", "none here for this type"]]);
  }
  const about = noEntry ? "The library itself, which has no entry in the blob." : region.about;
  const kind = noEntry ? "module" : inBlob ? `${region.kind}, module` : region.kind;
  const content = [make("h3", {}, noEntry ? module.typeKey : region.name),
    make("p", { class: "quiet" }, kind + (about ? `. ${about}` : "")), facts];
  if (!noEntry) content.push(region.children.length ? makeChildren(region) : makeHex(region));
  byId("details").replaceChildren(...content.filter(Boolean));
  byId("details").scrollTop = 0;
}

// ---- symbols, and what a load does

function startSymbols() {
  const columns = [
    { name: "Name", cell: (s) => make("span", {}, makeName("span", {}, s[0]),
      s[5] ? make("span", { class: "quiet meaning" }, s[5]) : "") },
    { name: "Type", cell: (s) => s[1] },
    { name: "Bind", cell: (s) => s[2] },
    { name: "Version", cell: (s) => s[3] ?? "" },
    { name: "Size", number: true, cell: (s) => whole(s[4]) },
  ];
  const { counts, defined, undefined: needed, limit } = data.symbols;
  const of = (rows, all) => (rows.length < all ? `${whole(limit)} of ${whole(all)}` : whole(all));
  const [[, numDefined, numNeeded]] = counts;
  const lines = counts.map(([name, has, needs]) =>
    has + needs ? `${name}: ${whole(has)} defined, ${whole(needs)} undefined` : `${name}: none`);
  byId("symbols-tables").append(
    make("p", { class: "quiet" }, `${lines.join("; ")}. All of them: packer inspect --symbols.`),
    table(`Defined for others, largest first: ${of(defined, numDefined)}`, columns, defined),
    table(`Needed of other files: ${of(needed, numNeeded)}`, columns.slice(0, 4), needed),
  );
}

function start() {
  startHead();
  startFindings();
  startTheme();
  startMap();
  startTree();
  listeners.push(showDetails);
  startFunctions();
  if (!startGraph()) byId("graph").remove();
  const hasWeights = startWeights();
  byId("weights").hidden = !hasWeights;
  startSymbols();
  fillFacts(byId("startup-facts"), Object.entries(data.startup));
  for (const [id, title] of Object.entries(PARTS)) {
    const part = byId(id);
    if (!part || part.hidden) continue;
    byId("parts").append(make("li", {}, make("a", { href: `#${id}` }, title)));
  }
  choose(regions.find((region) => region.kind === "blob") ?? regions[0]);
}

start();
