// The map: one bar for the file, and one for the parts of each selected block.

const ROLES = { "not loaded": "debug", loaded: "debug" };
const LEGEND = ["code", "constants", "variables", "tree", "linking", "not loaded", "padding"];
const MEANING = { tree: "import tree and facts", linking: "for the dynamic loader",
  padding: "between, padding" };

function roleClass(role) {
  return ROLES[role] ?? role;
}

function ancestors(region) {
  const path = [region];
  while (path[0].parent >= 0) path.unshift(regions[path[0].parent]);
  return path;
}

function makeBlock(region, parent) {
  const block = make(
    "button",
    { type: "button", class: `block ${roleClass(region.role)}`, "aria-pressed": "false",
      tabindex: "-1", title: `${region.name}, ${exact(region.nbytes)}`,
      "aria-label": `${region.name}, ${region.kind}, ${exact(region.nbytes)}, ` +
        `${percent(region.nbytes, parent.nbytes)} of ${parent.name}`,
      onclick: () => choose(region) },
    make("span", { class: "label" }, region.name),
    make("span", {}, short(region.nbytes)),
  );
  block.style.flexGrow = String((1000 * region.nbytes) / parent.nbytes);
  block.region = region;
  return block;
}

function makeLevel(parent) {
  const blocks = parent.children.map((child) => makeBlock(child, parent));
  const bar = make("div", { class: "bar", role: "toolbar", "aria-label": `Parts of ${parent.name}` },
    ...blocks);
  const line = make("div", { class: "level" },
    make("span", {}, make("span", { class: "mono" }, parent.name), ` ${parent.kind}`),
    make("span", {}, `${hex(parent.offset)}, ${exact(parent.nbytes)}`));
  const level = make("div", {}, line, bar);
  level.parent = parent;
  level.blocks = blocks;
  return level;
}

// The shape between the selected block and the bar below it.
function makeFan() {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "fan");
  svg.setAttribute("viewBox", "0 0 100 10");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  svg.append(document.createElementNS("http://www.w3.org/2000/svg", "polygon"));
  return svg;
}

const levels = [];

function drawFans() {
  for (const { blocks, fan } of levels) {
    const block = blocks.find((b) => b.getAttribute("aria-pressed") === "true");
    if (!fan || !block) continue;
    const bar = block.parentElement.getBoundingClientRect();
    const { left, right } = block.getBoundingClientRect();
    const [start, end] = [left, right].map((x) => (100 * (x - bar.left)) / bar.width);
    fan.firstChild.setAttribute("points", `${start},0 ${end},0 100,10 0,10`);
  }
}

function showOnMap(region) {
  const path = ancestors(region);
  const parents = path.filter((r) => r.children.length);
  let kept = 0;
  while (kept < levels.length && levels[kept].parent === parents[kept]) kept += 1;
  for (const level of levels.splice(kept)) level.element.remove();
  for (const parent of parents.slice(kept)) {
    const element = makeLevel(parent);
    const fan = levels.length ? makeFan() : null;
    if (fan) element.prepend(fan);
    byId("map").append(element);
    if (fan) levels.at(-1).fan = fan;
    levels.push({ parent, element, blocks: element.blocks, fan: null });
  }
  levels.forEach((level, depth) => {
    if (depth === levels.length - 1) level.fan = null;
    for (const block of level.blocks) {
      block.setAttribute("aria-pressed", String(path.includes(block.region)));
      block.tabIndex = -1;
    }
    (level.blocks.find((b) => path.includes(b.region)) ?? level.blocks[0]).tabIndex = 0;
  });
  drawFans();
}

function moveOnMap(event) {
  const block = event.target.closest(".block");
  if (!block || event.altKey || event.ctrlKey || event.metaKey) return;
  const depth = levels.findIndex((level) => level.blocks.includes(block));
  const { blocks } = levels[depth];
  const at = blocks.indexOf(block);
  const firstInside = () => {
    choose(block.region);
    return block.region.children.length ? levels[depth + 1].blocks[0] : null;
  };
  const target = {
    ArrowLeft: () => blocks[at - 1],
    ArrowRight: () => blocks[at + 1],
    Home: () => blocks[0],
    End: () => blocks.at(-1),
    ArrowDown: firstInside,
    ArrowUp: () => levels[depth - 1]?.blocks.find((b) => b.region.index === block.region.parent),
  }[event.key]?.();
  if (target === undefined) return;
  event.preventDefault();
  if (target) {
    choose(target.region);
    target.focus();
  }
}

function startMap() {
  const used = new Set(regions.map((region) => roleClass(region.role)));
  for (const role of LEGEND.filter((name) => used.has(roleClass(name)))) {
    const swatch = make("span", { class: `swatch ${roleClass(role)}` });
    byId("legend").append(make("li", {}, swatch, MEANING[role] ?? role));
  }
  byId("map").addEventListener("keydown", moveOnMap);
  new ResizeObserver(drawFans).observe(byId("map"));
  listeners.push(showOnMap);
}
