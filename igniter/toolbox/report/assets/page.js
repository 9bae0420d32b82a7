// The graph of a report: groups that open and close, search, and what is known of a node.
// Nothing of the model becomes markup: text is set as textContent, and Cytoscape draws labels on a canvas.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = new Map(data.nodes.map((n) => [n.id, n]));
  const $ = (id) => document.getElementById(id);
  // What a browser lays out in a moment, what is opened at first, and the readers from which on an edge is loose.
  const MOST = 1500, FIRST = 70, MANY = 3;
  const PALETTE = ["#cfe2f3", "#d9ead3", "#fff2cc", "#f4cccc", "#d9d2e9", "#d0e0e3", "#ead1dc", "#e2efda"];

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
      const mix = (a, b) => Math.round(a + (b - a) * Math.sqrt(share));
      return `rgb(${mix(246, 214)},${mix(246, 69)},${mix(246, 49)})`;
    }
    if (node && node.kind === "left") return "#fbe0bd";
    if (node && (node.kind === "input" || node.kind === "output")) return "#e3e6ea";
    const group = node ? regions.get(node.group) : tree.groups.get(id);
    const key = group ? group.kernel || group.id : id;
    let hash = 0;
    for (const c of key) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
    return PALETTE[hash % PALETTE.length];
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
    const found = [], parents = new Set();
    for (const id of visible.keys()) {
      const node = byId.get(id), group = tree.groups.get(id);
      const parent = node ? tree.home.get(id) : group.parent;
      for (const g of path(parent)) parents.add(g);
      const label = node
        ? node.kind === "input" || node.kind === "output" ? short(node.name) : `${short(node.op, 28)}\n${short(node.name, 28)}`
        : `${short(group.label, 20)}: ${group.all} node${group.all === 1 ? "" : "s"}\n${short(mainOps(group), 30)}`;
      found.push({
        data: { id, label, parent: tree.groups.has(parent) ? parent : undefined, color: colorOf(id, node) },
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
    return [...found, ...edges()];
  }

  // What many read (a mask, positions) does not say where its readers stand, but for the first: room for an edge to
  // each layer bends the chain of the layers.
  function edges() {
    const found = new Map(), readers = new Map(), placed = new Set();
    for (const [from, to, value] of data.edges) {
      const source = shown(from), target = shown(to), key = source + " " + target;
      if (source === target || found.has(key)) continue;
      found.set(key, { id: "e" + found.size, source, target, value });
      readers.set(source, (readers.get(source) || 0) + 1);
    }
    const wide = (edge) => readers.get(edge.source) > MANY;
    const first = new Set();
    for (const edge of found.values()) if (!wide(edge)) placed.add(edge.target);
    return [...found.values()].map((edge) => {
      const loose = wide(edge) && placed.has(edge.target) && first.has(edge.source);
      first.add(edge.source);
      return { data: edge, classes: loose ? "loose" : "" };
    });
  }

  const cy = cytoscape({
    container: $("cy"),
    minZoom: 0.02,
    maxZoom: 3,
    style: [
      { selector: "node", style: {
        label: "data(label)", "text-wrap": "wrap", "text-valign": "center", "font-size": 11, color: "#1d2733",
        "background-color": "data(color)", "border-width": 1, "border-color": "#6b87a0", shape: "round-rectangle",
        width: 184, height: 36 } },
      { selector: "node.input, node.output", style: { shape: "round-tag", width: 150, height: 26, "border-color": "#8a949e" } },
      { selector: "node.left", style: { "border-style": "dashed", "border-color": "#b3701a", "border-width": 1.5 } },
      { selector: "node.closed", style: { "border-width": 2.5, "border-color": "#4a7fb0", "font-weight": "bold" } },
      { selector: "node.open", style: {
        "background-color": "#eef3f8", "background-opacity": 0.6, "text-valign": "top", "text-halign": "center",
        "border-color": "#9db5ca", padding: 12, "font-size": 14, color: "#44627d", "text-margin-y": -2 } },
      { selector: "edge", style: {
        width: 1.2, "line-color": "#a9b6c2", "target-arrow-color": "#8795a3", "target-arrow-shape": "triangle",
        "arrow-scale": 0.8, "curve-style": "bezier" } },
      { selector: "edge.loose", style: { "line-color": "#ccd5dd", "line-style": "dashed", width: 1 } },
      { selector: "node:selected", style: { "border-color": "#c0392b", "border-width": 3 } },
      { selector: ".near", style: { "line-color": "#c0392b", "target-arrow-color": "#c0392b", width: 2 } },
    ],
  });

  function draw(focus) {
    cy.startBatch();
    cy.elements().remove();
    cy.add(elements());
    cy.endBatch();
    cy.elements().not("edge.loose").layout({ name: "dagre", rankDir: "TB", nodeSep: 18, rankSep: 34, edgeSep: 8, animate: false, fit: false }).run();
    $("count").textContent = `${cy.nodes().filter((n) => !n.isParent()).length} of ${data.nodes.length} shown`;
    if (focus && cy.getElementById(focus).length) select(focus, true);
    else home();
  }

  // The whole graph where it can be read, else its width, else its beginning.
  function home() {
    cy.fit(undefined, 24);
    if (cy.zoom() > 1.1) { cy.zoom(1.1); cy.center(); }
    const leaves = cy.nodes().filter((n) => !n.isParent());
    if (cy.zoom() >= 0.7 || !leaves.length) return;
    const box = cy.elements().boundingBox(), wide = cy.width() / (box.w + 48);
    const zoom = Math.max(0.45, Math.min(0.9, wide));
    const first = leaves.filter(".node, .left, .closed").sort((a, b) => a.position("y") - b.position("y")).slice(0, 6);
    const over = zoom > wide && first.length;
    const middle = over ? first.reduce((sum, n) => sum + n.position("x"), 0) / first.length : (box.x1 + box.x2) / 2;
    cy.zoom(zoom);
    cy.pan({ x: cy.width() / 2 - middle * zoom, y: 24 - box.y1 * zoom });
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

  function select(id, center) {
    chosen = id;
    cy.elements().unselect();
    cy.elements().removeClass("near");
    const found = cy.getElementById(id);
    found.select();
    found.connectedEdges().addClass("near");
    describe(id);
    if (center) {
      if (cy.zoom() < 0.6 || cy.zoom() > 1.6) cy.zoom(0.9);
      cy.center(found);
    }
  }

  cy.on("tap", "node", (event) => select(event.target.id(), false));
  cy.on("dbltap", "node", (event) => toggle(event.target.id()));

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
      const item = element("li", name);
      item.append(element("small", what));
      item.dataset.id = id;
      if (k === at) item.className = "on";
      item.addEventListener("mousedown", (event) => { event.preventDefault(); go(id); });
      return item;
    }));
    if (found.length > 60) list.append(element("li", `and ${found.length - 60} more`));
    if ($("search").value && !found.length) list.append(element("li", "nothing is called so"));
    list.hidden = !$("search").value;
  }

  function go(id) {
    $("found").hidden = true;
    reveal(id);
  }

  $("search").addEventListener("input", () => { at = 0; search(); });
  $("search").addEventListener("focus", search);
  $("search").addEventListener("blur", () => { $("found").hidden = true; });
  $("search").addEventListener("keydown", (event) => {
    const found = matches($("search").value);
    if (event.key === "Escape") $("found").hidden = true;
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

  function findAndGo(test) {
    const group = data.groups.find(test.group), node = data.nodes.find(test.node);
    if (!group && !node) return;
    if (group && mode !== "regions") { mode = "regions"; tree = trees.regions; $("mode").value = mode; }
    $("graph").scrollIntoView();
    reveal((group || node).id);
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
  window.report = { cy, data, toggle, reveal, isOpen: (id) => open.has(id) };
})();
