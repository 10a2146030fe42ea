// The import tree (ARIA's tree pattern), and the CSR arrays that store it.
// A module that is imported twice is shown in full once, and by name elsewhere.

const PAGE = 200; // children or array cells at a time
const FIRST_ITEMS = 100; // open at the start

const shownInFull = new Set();

function describeModule(module) {
  const words = [module.fmt, module.nbytes ? short(module.nbytes) : "",
    module.functions.length ? plural(module.functions.length, "function") : "",
    module.tensors ? plural(module.tensors, "tensor") : ""];
  return words.filter(Boolean).join(", ");
}

function makeItem(module, depth) {
  const again = shownInFull.has(module.index);
  shownInFull.add(module.index);
  const item = make(
    "li",
    { role: "treeitem", tabindex: "-1", "aria-level": depth, "aria-selected": "false",
      "aria-expanded": module.imports.length && !again ? "false" : null },
    make("span", { class: "node" }, make("span", { class: "mono" }, module.typeKey),
      make("span", { class: "quiet" }, again ? "imported here too" : describeModule(module))),
  );
  item.module = module;
  item.depth = depth;
  return item;
}

function addChildren(item, group, start) {
  const { imports } = item.module;
  const items = imports.slice(start, start + PAGE).map((i) => makeItem(modules[i], item.depth + 1));
  group.append(...items);
  const left = imports.length - start - PAGE;
  if (left <= 0) return items;
  const more = make(
    "li",
    { role: "treeitem", tabindex: "-1", "aria-level": item.depth + 1 },
    make("span", { class: "node" }, make("span", { class: "quiet" }, `${whole(left)} more: open`)),
  );
  more.open = () => {
    more.remove();
    focusItem(addChildren(item, group, start + PAGE)[0]);
  };
  group.append(more);
  return items;
}

function expand(item) {
  if (!item.hasAttribute("aria-expanded")) return [];
  item.setAttribute("aria-expanded", "true");
  const group = item.querySelector(":scope > ul");
  if (group) {
    group.hidden = false;
    return [];
  }
  const list = make("ul", { role: "group" });
  item.append(list);
  return addChildren(item, list, 0);
}

function collapse(item) {
  item.setAttribute("aria-expanded", "false");
  item.querySelector(":scope > ul").hidden = true;
}

function visibleItems() {
  return [...byId("tree").querySelectorAll('[role="treeitem"]')].filter(
    (item) => item.checkVisibility());
}

function focusItem(item) {
  if (!item) return;
  for (const other of byId("tree").querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
  item.tabIndex = 0;
  item.focus();
}

function activate(item) {
  focusItem(item);
  if (item.open) item.open();
  else chooseModule(item.module);
}

function moveInTree(event) {
  const item = event.target.closest('[role="treeitem"]');
  if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
  const isOpen = item.getAttribute("aria-expanded") === "true";
  const step = (by) => {
    const items = visibleItems();
    focusItem(items[items.indexOf(item) + by]);
  };
  const action = {
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    ArrowRight: () => (isOpen ? step(1) : expand(item)),
    ArrowLeft: () =>
      isOpen ? collapse(item) : focusItem(item.parentElement.closest('[role="treeitem"]')),
    Home: () => focusItem(visibleItems()[0]),
    End: () => focusItem(visibleItems().at(-1)),
    Enter: () => activate(item),
    " ": () => activate(item),
  }[event.key];
  if (!action) return;
  event.preventDefault();
  event.stopPropagation();
  action();
}

function clickInTree(event) {
  const item = event.target.closest('[role="treeitem"]');
  const node = event.target.closest(".node");
  if (!item || !node) return;
  const onArrow = event.clientX < node.getBoundingClientRect().left + 22;
  if (onArrow && item.getAttribute("aria-expanded") === "true") collapse(item);
  else if (onArrow) expand(item);
  else activate(item);
}

// ---- the arrays

function makeCells(name, values, isLit, ofCell) {
  const lit = values.findIndex((_, index) => isLit(index));
  const start = values.length <= PAGE ? 0 : Math.max(0, Math.min(lit - 20, values.length - PAGE));
  const shown = values.slice(start, start + PAGE).map((value, i) => {
    const index = start + i;
    const module = modules[ofCell(index)];
    return make(
      "li",
      { class: isLit(index) && "lit", "aria-current": isLit(index) && "true",
        title: module ? module.typeKey : null,
        onclick: module ? () => chooseModule(module) : null },
      make("small", {}, String(index)), String(value),
    );
  });
  const gone = (count) =>
    count > 0 ? make("li", { class: "gone" }, `${whole(count)} more`) : null;
  return [
    make("h4", {}, name),
    make("ol", { class: "cells", role: "list", tabindex: "0",
      "aria-label": `${name}, ${plural(values.length, "value")}` },
      ...[gone(start), ...shown, gone(values.length - start - PAGE)].filter(Boolean)),
  ];
}

function showArrays(module) {
  const { row_ptr: pointers, child_indices: children, rows } = data;
  if (!pointers) return;
  const row = module ? module.row : -1;
  const [start, end] = row < 0 ? [-1, -1] : [pointers[row], pointers[row + 1]];
  const names = children.slice(start, Math.min(end, start + 12)).map((i) => modules[rows[i]]?.typeKey);
  const text = row < 0
    ? "Select a module to see its row. Modules are numbered in blob order; the root is 0."
    : `${module.typeKey} is module ${row} of the blob: row_ptr[${row}] and [${row + 1}] say that ` +
      `its imports are child_indices[${start}:${end}]: ` +
      (end > start ? names.join(", ") + (end - start > 12 ? ", ..." : "") : "none") + ".";
  byId("arrays").replaceChildren(
    ...makeCells("import_tree_row_ptr", pointers,
      (i) => row >= 0 && (i === row || i === row + 1), (i) => rows[i]),
    ...makeCells("import_tree_child_indices", children,
      (i) => i >= start && i < end, (i) => rows[children[i]]),
    make("p", {}, text),
  );
}

function showInTree(region, module) {
  for (const item of byId("tree").querySelectorAll('[role="treeitem"]')) {
    if (item.module) item.setAttribute("aria-selected", String(item.module === module));
  }
  showArrays(module);
}

function startTree() {
  const tree = byId("tree");
  if (!modules.length) {
    byId("tree-part").replaceChildren(make("h3", {}, "Import tree"),
      make("p", { class: "quiet" }, "It cannot be read: see the problems above."));
    return;
  }
  const root = makeItem(modules[0], 1);
  root.tabIndex = 0;
  tree.append(root);
  const pending = [root];
  for (let count = 1; pending.length && count < FIRST_ITEMS;) {
    const items = expand(pending.shift());
    count += items.length;
    pending.push(...items);
  }
  tree.addEventListener("keydown", moveInTree);
  tree.addEventListener("click", clickInTree);
  listeners.push(showInTree);
}
