// The graph of a report: groups that open and close, search, and what is known of a node.
// Nothing of the model becomes markup: text is set as textContent, and Cytoscape draws labels on a canvas.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = new Map(data.nodes.map((n) => [n.id, n]));
  const $ = (id) => document.getElementById(id);
  // What a browser lays out in a moment, what is opened at first, and the most readers whose edges are all drawn.
  const MOST = 1500, FIRST = 70, MANY = 3;
  // The size of labels in the graph, and the zoom at which they have the 12 px that can be read.
  const FONT = 13, READABLE = 12 / FONT;
  // Colors of the canvas. Labels have a contrast of 4.5:1 or more with their boxes; borders and edges have 3:1.
  const THEMES = {
    light: {
      canvas: "#fbfcfd", ink: "#1d2733", border: "#5b7690", edge: "#6f7f8e", closed: "#2f6ea5", open: "#eef3f8", title: "#34526b",
      left: "#fbe0bd", leftBorder: "#9a5a10", port: "#e3e6ea", portBorder: "#6b7680", chosen: "#b8291b", cold: [246, 246, 246], hot: [242, 122, 96],
      palette: ["#cfe2f3", "#d9ead3", "#fff2cc", "#f4cccc", "#d9d2e9", "#d0e0e3", "#ead1dc", "#e2efda"],
    },
    dark: {
      canvas: "#12171d", ink: "#eef3f7", border: "#8aa3ba", edge: "#7f8e9c", closed: "#6fb1ea", open: "#1b2530", title: "#b7cbdd",
      left: "#573b14", leftBorder: "#e0a040", port: "#333b44", portBorder: "#98a3ad", chosen: "#ff8f85", cold: [36, 44, 52], hot: [163, 58, 34],
      palette: ["#24425c", "#2c4a2a", "#55481c", "#5a2f2f", "#40375c", "#24494f", "#512f42", "#36492b"],
    },
  };
  const darkness = window.matchMedia("(prefers-color-scheme: dark)");
  const theme = () => (darkness.matches ? THEMES.dark : THEMES.light);

  // -- the two trees of groups -------------------------------------------------------------------------------------
  // A tree: groups by id, each {id, label, kind, parent, children: Set, nodes: [id], all: number of nodes}, and the
  // group of each node.

  function emptyTree() {
    return { groups: new Map(), home: new Map() };
  }

  function addGroup(tree, group) {
    tree.groups.set(group.id, { ...group, children: [], nodes: [], all: 0 });
    const parent = tree.groups.get(group.parent);
    if (parent) parent.children.push(group.id);
  }

  function addNode(tree, node, group) {
    tree.home.set(node.id, group);
    if (tree.groups.has(group)) tree.groups.get(group).nodes.push(node.id);
    for (let g = tree.groups.get(group); g; g = tree.groups.get(g.parent)) g.all += 1;
  }

  function regionTree() {
    const tree = emptyTree();
    for (const group of data.groups) addGroup(tree, group);
    for (const node of data.nodes) addNode(tree, node, node.group);
    return tree;
  }

  function moduleTree() {
    const tree = emptyTree();
    for (const node of data.nodes) {
      let parent = "";
      node.module.forEach((name, depth) => {
        const id = "m:" + JSON.stringify(node.module.slice(0, depth + 1));
        if (!tree.groups.has(id)) addGroup(tree, { id, label: name, kind: "module", parent, name: node.module.slice(0, depth + 1).join(".") });
        parent = id;
      });
      addNode(tree, node, parent);
    }
    return tree;
  }

  const regions = new Map(data.groups.map((g) => [g.id, g]));
  const trees = { regions: regionTree(), modules: moduleTree() };
  let mode = "regions", open = new Set(), tree = trees.regions, chosen = null;

  function nodesOf(group) {
    return [...group.nodes, ...group.children.flatMap((c) => nodesOf(tree.groups.get(c)))];
  }

  function timeOf(id) {
    const group = tree.groups.get(id);
    if (!group) return (byId.get(id) || {}).ms || 0;
    if (group.ms !== undefined) return group.ms;
    return nodesOf(group).reduce((sum, n) => sum + (byId.get(n).ms || 0), 0);
  }

  // -- what is visible ---------------------------------------------------------------------------------------------

  function path(group) {
    const found = [];
    for (let g = tree.groups.get(group); g; g = tree.groups.get(g.parent)) found.unshift(g.id);
    return found;
  }

  // The node itself, or the outermost closed group that it is in.
  function shown(node) {
    const closed = path(tree.home.get(node)).find((g) => !open.has(g));
    return closed === undefined ? node : closed;
  }

  function openFirst() {
    open = new Set();
    let count = visibleCount();
    // Groups are opened from outside in, all of one depth together, while the picture stays small.
    for (let depth = 0; ; depth++) {
      const level = [...tree.groups.values()].filter((g) => path(g.id).length === depth + 1).map((g) => g.id);
      if (!level.length) break;
      const before = new Set(open);
      level.forEach((g) => open.add(g));
      count = visibleCount();
      if (count > FIRST) { open = before; break; }
    }
    // One group that holds all says nothing closed.
    if (visibleCount() < 4) for (const g of tree.groups.values()) if (!tree.groups.has(g.parent) && visibleWith(g.id) <= MOST) open.add(g.id);
  }

  function visibleCount() {
    return new Set(data.nodes.map((n) => shown(n.id))).size;
  }

  function visibleWith(group) {
    const had = open.has(group);
    open.add(group);
    const count = visibleCount();
    if (!had) open.delete(group);
    return count;
  }

  // -- drawing -----------------------------------------------------------------------------------------------------

  function short(text, most = 34) {
    return text.length <= most ? text : text.slice(0, most - 1) + "…";
  }

  function colorOf(id, node) {
    if ($("color").value === "time") {
      const share = Math.min(1, timeOf(id) / Math.max(1e-9, hottest));
      const { cold, hot } = theme();
      return `rgb(${cold.map((c, k) => Math.round(c + (hot[k] - c) * Math.sqrt(share))).join(",")})`;
    }
    if (node && node.kind === "left") return theme().left;
    if (node && (node.kind === "input" || node.kind === "output")) return theme().port;
    const group = node ? regions.get(node.group) : tree.groups.get(id);
    const key = group ? group.kernel || group.id : id;
    let hash = 0;
    for (const c of key) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
    return theme().palette[hash % theme().palette.length];
  }

  // The ops of a group, those with the most operations first.
  function mainOps(group) {
    const work = new Map();
    for (const n of nodesOf(group).map((id) => byId.get(id))) {
      const op = n.op.split(".").pop();
      work.set(op, (work.get(op) || 0) + (n.flops || 0));
    }
    return [...work].sort((a, b) => b[1] - a[1]).map(([op]) => op).join(", ");
  }

  let hottest = 0;

  function elements() {
    const visible = new Map();
    for (const node of data.nodes) visible.set(shown(node.id), true);
    hottest = Math.max(0, ...[...visible.keys()].map(timeOf));
    const found = [], parents = new Set(), lines = edges();
    for (const id of visible.keys()) {
      const node = byId.get(id), group = tree.groups.get(id);
      const parent = node ? tree.home.get(id) : group.parent;
      for (const g of path(parent)) parents.add(g);
      const what = node
        ? node.kind === "input" || node.kind === "output" ? short(node.name) : `${short(node.op, 28)}\n${short(node.name, 28)}`
        : `${short(group.label, 20)}: ${group.all} node${group.all === 1 ? "" : "s"}\n${short(mainOps(group), 27)}`;
      const label = [what, ...marksOf(id)].join("\n"), height = 10 + 17 * Math.max(2, label.split("\n").length);
      found.push({
        data: { id, label, height, parent: tree.groups.has(parent) ? parent : undefined, color: colorOf(id, node) },
        classes: node ? node.kind : "closed " + group.kind,
      });
    }
    for (const g of parents) {
      const group = tree.groups.get(g);
      found.push({
        data: { id: g, label: short(group.label, 40), parent: tree.groups.has(group.parent) ? group.parent : undefined },
        classes: "open " + group.kind,
      });
    }
    return [...found, ...lines];
  }

  // A value with many readers (a mask, positions) does not say where its readers stand, and its edges would cross the
  // whole graph: only the first is drawn, the other readers have the value's name as a mark. A reader that no other
  // edge places keeps its edge, and so does a single one beside such readers (the residual beside three products).
  let shared = new Map();

  function edges() {
    const found = new Map(), readers = new Map(), placed = new Set(), first = new Set();
    for (const [from, to, value] of data.edges) {
      const source = shown(from), target = shown(to), pair = source + " " + target, key = JSON.stringify([from, value]);
      if (source === target) continue;
      if (!readers.has(key)) readers.set(key, { value, source, targets: new Set() });
      readers.get(key).targets.add(target);
      if (!found.has(pair)) found.set(pair, { id: "e" + found.size, source, target, value, keys: new Set() });
      found.get(pair).keys.add(key);
    }
    const wide = (edge) => [...edge.keys].every((key) => readers.get(key).targets.size > MANY);
    for (const edge of found.values()) if (!wide(edge)) placed.add(edge.target);
    shared = new Map();
    return [...found.values()].map(({ keys, ...edge }) => {
      const crowd = [...keys].every((key) => [...readers.get(key).targets].filter((t) => placed.has(t)).length >= MANY);
      const hidden = crowd && wide({ keys }) && placed.has(edge.target) && [...keys].every((key) => first.has(key));
      for (const key of keys) {
        first.add(key);
        if (!hidden) continue;
        if (!shared.has(key)) shared.set(key, { ...readers.get(key), marked: new Set() });
        shared.get(key).marked.add(edge.target);
      }
      return { data: edge, classes: hidden ? "shared" : "" };
    });
  }

  function marksOf(id) {
    const names = [...shared.values()].filter((s) => s.marked.has(id)).map((s) => s.value);
    return names.length > 1 ? [`‹ ${names.length} shared values`] : names.map((name) => `‹ ${short(name, 26)}`);
  }

  function showShared() {
    const items = [...shared.values()].map(({ value, source, targets }) => {
      const item = element("li"), button = element("button", value, "link");
      button.addEventListener("click", () => select(source, true));
      item.append(button, ` has ${targets.size} readers, marked "‹ ${short(value, 26)}"`);
      return item;
    });
    $("shared").hidden = !items.length;
    $("shared").querySelector("ul").replaceChildren(...items);
  }

  const cy = cytoscape({
    container: $("cy"),
    minZoom: 0.02,
    maxZoom: 3,
    style: styles(),
  });

  function styles() {
    const t = theme();
    return [
      { selector: "node", style: {
        label: "data(label)", "text-wrap": "wrap", "text-valign": "center", "font-size": FONT, color: t.ink,
        "background-color": "data(color)", "border-width": 1, "border-color": t.border, shape: "round-rectangle",
        width: 240 } },
      { selector: "node[height]", style: { height: "data(height)" } },
      { selector: "node.input, node.output", style: { shape: "round-tag", width: 220, height: 30, "border-color": t.portBorder } },
      { selector: "node.left", style: { "border-style": "dashed", "border-color": t.leftBorder, "border-width": 1.5 } },
      { selector: "node.closed", style: { "border-width": 2.5, "border-color": t.closed, "font-weight": "bold" } },
      { selector: "node.open", style: {
        "background-color": t.open, "background-opacity": 0.6, "text-valign": "top", "text-halign": "center",
        "border-color": t.border, padding: 12, "font-size": FONT + 1, color: t.title, "text-margin-y": -2 } },
      { selector: "edge", style: {
        width: 1.2, "line-color": t.edge, "target-arrow-color": t.edge, "target-arrow-shape": "triangle",
        "arrow-scale": 0.8, "curve-style": "bezier" } },
      { selector: "edge.shared", style: { display: "none", "line-style": "dashed" } },
      { selector: "edge.shared.near", style: { display: "element" } },
      { selector: "node:selected", style: { "border-color": t.chosen, "border-width": 4 } },
      { selector: ".near", style: { "line-color": t.chosen, "target-arrow-color": t.chosen, width: 2 } },
    ];
  }

  function draw(focus) {
    cy.startBatch();
    cy.elements().remove();
    cy.add(elements());
    cy.endBatch();
    cy.elements().not("edge.shared").layout({ name: "dagre", rankDir: "TB", nodeSep: 18, rankSep: 34, edgeSep: 8, animate: false, fit: false }).run();
    $("count").textContent = `${cy.nodes().filter((n) => !n.isParent()).length} of ${data.nodes.length} shown`;
    showShared();
    if (focus && cy.getElementById(focus).length) select(focus, true);
    else home();
  }

  // Nodes and closed groups from the top to the bottom, without the model's inputs and outputs.
  function inOrder() {
    const leaves = cy.nodes().filter(".node, .left, .closed");
    return (leaves.length ? leaves : cy.nodes()).sort((a, b) => a.position("y") - b.position("y") || a.position("x") - b.position("x"));
  }

  // The whole graph where its labels can be read, else its beginning at a zoom where they can.
  function home() {
    cy.resize();
    cy.fit(undefined, 24);
    if (cy.zoom() > 1.1) { cy.zoom(1.1); cy.center(); }
    if (cy.zoom() >= READABLE || !cy.nodes().length) return;
    const box = cy.elements().boundingBox(), first = inOrder().slice(0, 6).map((n) => n.position("x"));
    const spread = Math.max(...first) - Math.min(...first);
    const middle = spread > cy.width() - 240 ? first[0] : (Math.max(...first) + Math.min(...first)) / 2;
    cy.zoom(1);
    cy.pan({ x: cy.width() / 2 - middle, y: 24 - box.y1 });
  }

  function toggle(id) {
    if (!tree.groups.has(id)) return;
    if (open.has(id)) open.delete(id);
    else if (visibleWith(id) > MOST) return tell(`Opening it would show ${visibleWith(id)} nodes, more than can be laid out; search finds single nodes.`);
    else open.add(id);
    draw(id);
  }

  function reveal(id) {
    const group = tree.groups.has(id) ? tree.groups.get(id).parent : tree.home.get(id);
    for (const g of path(group)) open.add(g);
    draw(id);
  }

  // -- details -----------------------------------------------------------------------------------------------------

  function element(tag, text, name) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
  }

  function tell(text) {
    $("details").replaceChildren(element("p", text, "hint"));
  }

  function amount(value, unit) {
    const units = ["", "k", "M", "G", "T"];
    let k = 0;
    while (value >= 1000 && k < units.length - 1) { value /= 1000; k++; }
    return `${value.toPrecision(3)} ${units[k]}${unit}`;
  }

  function facts(pairs) {
    const list = element("dl");
    for (const [name, value] of pairs) {
      if (value === undefined || value === null || value === "") continue;
      list.append(element("dt", name), element("dd", String(value)));
    }
    return list;
  }

  function values(title, list) {
    if (!list || !list.length) return [];
    const items = element("ul");
    for (const [name, type] of list) items.append(element("li", `${name}: ${type}`));
    return [element("h4", title), items];
  }

  function attributes(list) {
    return list && list.length ? [element("h4", "attributes"), facts(list)] : [];
  }

  function rates(g) {
    if (g.ms === undefined) return [];
    const found = [["time", `${g.ms.toFixed(4)} ms, ${(100 * (g.share || 0)).toFixed(1)}% of a run`]];
    if (g.flops !== undefined) found.push(["operations", amount(g.flops, "")], ["rate", `${(g.flops / g.ms / 1e6).toPrecision(3)} GFLOP/s`]);
    if (g.bytes !== undefined) found.push(["bytes", amount(g.bytes, "B")], ["bandwidth", `${(g.bytes / g.ms / 1e6).toPrecision(3)} GB/s`]);
    return found;
  }

  function describe(id) {
    const node = byId.get(id), group = tree.groups.get(id), parts = [];
    if (node) {
      parts.push(element("h3", node.op), element("div", node.name));
      if (node.reason) parts.push(element("p", node.reason, "reason"));
      const region = regions.get(node.group), share = node.ms;
      parts.push(facts([
        ["runs in", node.kind === "left" ? "ONNX Runtime" : region ? `${region.label}${region.kernel ? ", kernel " + region.kernel : ""}` : undefined],
        ["module", node.module.join(".")],
        ["type", node.type],
        ["operations", node.flops ? amount(node.flops, "") : undefined],
        ["time", share ? `about ${share.toFixed(4)} ms, by its operations` : undefined],
      ]));
      parts.push(...attributes(node.attributes));
      parts.push(...values("reads", node.inputs), ...values("computes", node.outputs));
    } else if (group) {
      const ops = new Map();
      for (const n of nodesOf(group)) ops.set(byId.get(n).op, (ops.get(byId.get(n).op) || 0) + 1);
      parts.push(element("h3", group.label), element("div", `${group.kind}${group.name && group.name !== group.label ? ", " + group.name : ""}`));
      const ms = timeOf(id);
      parts.push(facts([["nodes", group.all], ["kernel", group.kernel], ...(group.ms !== undefined ? rates(group) : ms ? [["time", `about ${ms.toFixed(4)} ms`]] : [])]));
      const button = element("button", open.has(id) ? "Close" : "Open");
      button.id = "toggle";
      button.addEventListener("click", () => toggle(id));
      parts.push(button, element("h4", "ops"));
      const items = element("ul");
      for (const [op, count] of [...ops].sort((a, b) => b[1] - a[1])) items.append(element("li", `${op}: ${count}`));
      parts.push(items);
    }
    $("details").replaceChildren(...parts);
  }

  function clear() {
    chosen = null;
    cy.elements().unselect();
    cy.elements().removeClass("near");
  }

  function select(id, center) {
    clear();
    chosen = id;
    const found = cy.getElementById(id);
    found.select();
    found.connectedEdges().addClass("near");
    describe(id);
    $("said").textContent = spoken(id);
    if (center) {
      if (cy.zoom() < READABLE || cy.zoom() > 1.6) cy.zoom(1);
      if (found.isParent() && found.renderedBoundingBox().h > cy.height()) cy.pan({ x: cy.width() / 2 - found.position("x") * cy.zoom(), y: 40 - found.boundingBox().y1 * cy.zoom() });
      else cy.center(found);
    }
  }

  function spoken(id) {
    const node = byId.get(id), group = tree.groups.get(id);
    if (group) return `${group.kind} ${group.label}, ${group.all} nodes, ${open.has(id) ? "open" : "closed"}`;
    return `${node.op} ${node.name}${node.kind === "left" ? ", run by ONNX Runtime" : ""}`;
  }

  cy.on("tap", "node", (event) => select(event.target.id(), false));
  cy.on("dbltap", "node", (event) => toggle(event.target.id()));
  cy.on("tap", (event) => { if (event.target === cy) { clear(); tell("Nothing is selected."); } });
  darkness.addEventListener("change", () => { cy.style(styles()); draw(chosen); });

  // -- the graph by keyboard ---------------------------------------------------------------------------------------

  const STEPS = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] };

  // The node that an arrow key leads to: up and down along an edge if there is one, otherwise the nearest in that
  // direction.
  function beside(node, [dx, dy]) {
    const at = node.position(), leaves = cy.nodes().filter((n) => !n.isParent() && n.id() !== node.id());
    const offset = (n) => [n.position("x") - at.x, n.position("y") - at.y];
    const ahead = (n) => { const [x, y] = offset(n); return x * dx + y * dy; };
    const aside = (n) => { const [x, y] = offset(n); return Math.abs(x * dy) + Math.abs(y * dx); };
    const linked = dy ? (dy > 0 ? node.outgoers("node") : node.incomers("node")) : cy.collection();
    const found = linked.length ? linked : leaves.filter((n) => ahead(n) > 1 && (dy || aside(n) < 3 * ahead(n)));
    const cost = (n) => Math.abs(ahead(n)) + 2 * aside(n);
    return found.length ? found.sort((a, b) => cost(a) - cost(b))[0] : null;
  }

  function walk(key) {
    const node = chosen ? cy.getElementById(chosen) : cy.collection();
    if (!node.length) return select(inOrder()[0].id(), true);
    const inside = node.isParent() ? node.descendants().filter((n) => !n.isParent()).sort((a, b) => a.position("y") - b.position("y")) : [];
    const next = inside.length && key === "ArrowDown" ? inside[0] : beside(node, STEPS[key]);
    if (next) select(next.id(), true);
  }

  const KEYS = {
    Home: () => select(inOrder()[0].id(), true),
    Enter: () => { if (chosen && tree.groups.has(chosen)) toggle(chosen); else if (chosen) $("details").focus(); },
    Backspace: () => { const around = chosen && cy.getElementById(chosen).parent(); if (around && around.length) select(around.id(), true); },
    Escape: () => { clear(); tell("Nothing is selected."); },
    "+": () => zoom(1.3),
    "=": () => zoom(1.3),
    "-": () => zoom(1 / 1.3),
    0: () => cy.fit(undefined, 24),
  };

  $("cy").addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (STEPS[event.key]) walk(event.key);
    else if (KEYS[event.key]) KEYS[event.key]();
    else return;
    event.preventDefault();
  });

  // -- search ------------------------------------------------------------------------------------------------------

  function matches(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const hit = (parts) => { const all = parts.join(" ").toLowerCase(); return words.every((w) => all.includes(w)); };
    if (!words.length) return [];
    const groups = [...tree.groups.values()].filter((g) => hit([g.label, g.kernel || "", g.name || ""]));
    const nodes = data.nodes.filter((n) => hit([n.name, n.op, n.module.join("."), ...(n.outputs || []).map((o) => o[0])]));
    return [...groups.map((g) => [g.id, g.label, g.kind]), ...nodes.map((n) => [n.id, n.name, n.op])];
  }

  let at = 0;

  function search() {
    const found = matches($("search").value), list = $("found");
    list.replaceChildren(...found.slice(0, 60).map(([id, name, what], k) => {
      const item = option(name);
      item.append(element("small", what));
      item.id = "found-" + k;
      if (k === at) { item.className = "on"; item.setAttribute("aria-selected", "true"); }
      item.addEventListener("mousedown", (event) => { event.preventDefault(); go(id); });
      return item;
    }));
    if (found.length > 60) list.append(option(`and ${found.length - 60} more`, true));
    if ($("search").value && !found.length) list.append(option("nothing is called so", true));
    showFound(Boolean($("search").value));
    if (found.length && !list.hidden) {
      $("search").setAttribute("aria-activedescendant", "found-" + at);
      $("found-" + at).scrollIntoView({ block: "nearest" });
    }
  }

  function option(text, disabled) {
    const item = element("li", text);
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    if (disabled) item.setAttribute("aria-disabled", "true");
    return item;
  }

  function showFound(visible) {
    $("found").hidden = !visible;
    $("search").setAttribute("aria-expanded", String(visible));
    $("search").removeAttribute("aria-activedescendant");
  }

  function go(id) {
    showFound(false);
    reveal(id);
  }

  $("search").addEventListener("input", () => { at = 0; search(); });
  $("search").addEventListener("focus", search);
  $("search").addEventListener("blur", () => showFound(false));
  $("search").addEventListener("keydown", (event) => {
    const found = matches($("search").value);
    if (event.key === "Escape") showFound(false);
    else if (event.key === "Enter" && found.length) go(found[at % found.length][0]);
    else if (event.key === "ArrowDown" && found.length) { at = (at + 1) % Math.min(60, found.length); search(); }
    else if (event.key === "ArrowUp" && found.length) { at = (at + Math.min(60, found.length) - 1) % Math.min(60, found.length); search(); }
    else return;
    event.preventDefault();
  });

  // -- buttons -----------------------------------------------------------------------------------------------------

  function setMode(wanted) {
    mode = wanted;
    tree = trees[mode];
    $("mode").value = mode;
    openFirst();
    draw();
  }

  $("mode").addEventListener("change", () => setMode($("mode").value));
  $("color").addEventListener("change", () => draw(chosen));
  $("collapse-all").addEventListener("click", () => { open = new Set(); draw(); });
  $("expand-all").addEventListener("click", () => {
    if (data.nodes.length > MOST) return tell(`The graph has ${data.nodes.length} nodes, more than can be laid out at once: open groups one by one, or search.`);
    open = new Set(tree.groups.keys());
    draw();
  });
  const zoom = (factor) => cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
  $("zoom-in").addEventListener("click", () => zoom(1.3));
  $("zoom-out").addEventListener("click", () => zoom(1 / 1.3));
  $("fit").addEventListener("click", () => cy.fit(undefined, 24));
  $("home").addEventListener("click", home);

  function findAndGo(test) {
    const group = data.groups.find(test.group), node = data.nodes.find(test.node);
    if (!group && !node) return;
    if (group && mode !== "regions") { mode = "regions"; tree = trees.regions; $("mode").value = mode; }
    $("graph").scrollIntoView();
    reveal((group || node).id);
    // The next Tab goes on from here.
    $("details").focus({ preventScroll: true });
  }

  document.addEventListener("click", (event) => {
    const { kernel, node } = event.target.dataset || {};
    if (kernel) findAndGo({ group: (g) => g.kernel === kernel || g.name === kernel, node: () => false });
    else if (node) findAndGo({ group: () => false, node: (n) => n.name === node });
  });

  if (!trees.modules.groups.size) $("mode").options[1].disabled = true;
  // Kernels tell most, but where one program of too many stays closed, modules do.
  setMode("regions");
  if (trees.modules.groups.size && data.nodes.length > FIRST && visibleCount() < 12) setMode("modules");
  // For tests, and for whoever looks from the console.
  window.report = { cy, data, toggle, reveal, isOpen: (id) => open.has(id), themes: THEMES, font: FONT };
})();
