// The decision map of the page: controls, two maps, and the numbers of a cell.
(() => {
  const root = document.getElementById("decision-map");
  if (!root) return;
  const find = (id) => document.getElementById(id);
  const SIDE = 300, LEFT = 46, TOP = 8; // of a map, in units of its view box
  const NAMES = { 1: "A", 0: "tie", [-1]: "B" };
  const STYLES = { 1: "a", 0: "t", [-1]: "b" };
  const presets = JSON.parse(find("presets").textContent);
  const neutral = { name: "neutral start", beta: 1, eta0: 0, gamma: 0, alpha: 1, kappa: 1 };
  if (!presets.length) presets.push(neutral);

  let model = { ...presets[0] };
  let n = Number(root.dataset.votes);
  let cursor = { a: n, b: 0 };

  // ---- numbers as text
  const shown = (x) => {
    const size = Math.abs(x);
    if (!Number.isFinite(x)) return "beyond 1e308";
    return size !== 0 && (size < 0.001 || size >= 1e5) ? x.toExponential(2) : String(+x.toPrecision(4));
  };
  const share = (p) => (p !== 0 && p < 0.0005 ? p.toExponential(1) : p.toFixed(3));

  // ---- controls
  const controls = {
    beta: { read: () => model.beta, write: (x) => (model.beta = x) },
    // The slider moves the exponent of ten; the field holds nu itself.
    nu: {
      read: () => model.eta0 / Math.LN10,
      write: (x) => (model.eta0 = x * Math.LN10),
      field: () => Math.exp(model.eta0),
      parse: (x) => (x > 0 ? Math.log10(x) : NaN),
    },
    gamma: { read: () => model.gamma, write: (x) => (model.gamma = x) },
    n: { read: () => n, write: (x) => (n = x), parse: (x) => (x >= 2 && x <= 40 && x % 1 === 0 ? x : NaN) },
  };

  const preset = find("preset");
  presets.forEach((one, place) => preset.add(new Option(one.name, String(place))));
  const own = new Option("your own values", "own");
  preset.add(own);

  function showControls(except) {
    for (const [name, control] of Object.entries(controls)) {
      const slider = find(name), field = find(`${name}-number`);
      const value = control.field ? control.field() : control.read();
      if (slider !== except) slider.value = String(control.read());
      if (field !== except) field.value = Number.isFinite(value) ? shown(value) : "";
      slider.setAttribute("aria-valuetext", shown(value));
    }
    const { alpha, kappa } = model;
    find("smoothing").textContent =
      alpha === 1 && kappa === 1 ? "" : `smoothing α = ${shown(alpha)}, κ = ${shown(kappa)}`;
  }

  for (const [name, control] of Object.entries(controls)) {
    const change = (event, value) => {
      event.target.toggleAttribute("aria-invalid", !Number.isFinite(value));
      if (!Number.isFinite(value)) return;
      control.write(value);
      if (name !== "n") preset.value = "own";
      showControls(event.target);
      draw();
    };
    find(name).addEventListener("input", (event) => change(event, Number(event.target.value)));
    const field = find(`${name}-number`);
    field.addEventListener("input", (event) => {
      const value = event.target.value === "" ? NaN : Number(event.target.value);
      change(event, control.parse ? control.parse(value) : value);
    });
    field.addEventListener("change", () => showControls()); // what was no value gives way
  }
  preset.addEventListener("change", () => {
    if (preset.value === "own") return;
    model = { ...presets[Number(preset.value)] };
    showControls();
    draw();
  });
  root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());

  // ---- maps
  function element(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function everyCell(visit) {
    for (let a = 0; a <= n; a++) for (let b = 0; a + b <= n; b++) visit(a, b, n - a - b);
  }

  const left = (a) => LEFT + (a * SIDE) / (n + 1);
  const top = (b) => TOP + SIDE - ((b + 1) * SIDE) / (n + 1);

  class VoteMap {
    constructor(name, decide, certainty) {
      Object.assign(this, { svg: find(`${name}-map`), decide, certainty, n: 0, cells: [] });
      this.svg.addEventListener("pointermove", (event) => this.point(event));
      this.svg.addEventListener("pointerdown", (event) => this.point(event));
      this.svg.addEventListener("keydown", move);
    }

    point(event) {
      const at = new DOMPoint(event.clientX, event.clientY)
        .matrixTransform(this.svg.getScreenCTM().inverse());
      const a = Math.floor(((at.x - LEFT) * (n + 1)) / SIDE);
      const b = Math.floor(((TOP + SIDE - at.y) * (n + 1)) / SIDE);
      if (a >= 0 && b >= 0 && a + b <= n) select(a, b);
    }

    // Cells, axes and the frame of the cursor, once for every n.
    lay() {
      this.n = n;
      const size = SIDE / (n + 1), gap = Math.min(1, size / 8);
      const parts = [], axes = [];
      this.cells = [];
      everyCell((a, b) => {
        const cell = element("rect", {
          x: left(a) + gap / 2, y: top(b) + gap / 2, width: size - gap, height: size - gap,
        });
        cell.dataset.a = a;
        cell.dataset.b = b;
        this.cells.push(cell);
      });
      const every = [1, 2, 5, 10].find((step) => n / step <= 8);
      for (let k = 0; k <= n; k += every) {
        axes.push(element("text", { x: left(k) + size / 2, y: TOP + SIDE + 16, class: "tick" }, k));
        axes.push(element("text", { x: LEFT - 8, y: top(k) + size / 2 + 4, class: "tick y" }, k));
      }
      const middle = TOP + SIDE / 2;
      axes.push(element("text", { x: LEFT + SIDE / 2, y: TOP + SIDE + 36, class: "axis" }, "votes for A"));
      axes.push(element("text", {
        x: 14, y: middle, class: "axis", transform: `rotate(-90 14 ${middle})`,
      }, "votes for B"));
      axes.push(element("text", { x: LEFT + SIDE - 4, y: TOP + 14, class: "axis end" }, "the rest are ties"));
      this.marks = element("g", { class: "marks" });
      this.names = element("g", { class: "names" });
      this.frame = element("rect", { class: "frame", width: size, height: size });
      parts.push(...this.cells, ...axes, this.marks, this.names, this.frame);
      this.svg.replaceChildren(...parts);
    }

    draw() {
      if (this.n !== n) this.lay();
      const regions = { 1: [], 0: [], [-1]: [] };
      this.marks.replaceChildren();
      this.names.replaceChildren();
      for (const cell of this.cells) {
        const a = Number(cell.dataset.a), b = Number(cell.dataset.b);
        const label = this.decide(b, n - a - b, a);
        cell.setAttribute("class", STYLES[label]);
        cell.setAttribute("fill-opacity", 0.3 + 0.7 * this.certainty(b, n - a - b, a)[label + 1]);
        regions[label].push({ a, b });
        if (this.marked && label !== davidson.majority(b, n - a - b, a)) {
          const size = SIDE / (n + 1);
          this.marks.append(element("circle", {
            cx: left(a) + size / 2, cy: top(b) + size / 2, r: Math.min(2.2, size / 5),
          }));
        }
      }
      for (const [label, cells] of Object.entries(regions)) this.name(label, cells);
      return regions;
    }

    // The name of a region, where it is widest.
    name(label, cells) {
      if (!cells.length) return;
      const mean = (key) => cells.reduce((sum, cell) => sum + cell[key], 0) / cells.length;
      const a = mean("a"), b = mean("b");
      const apart = (cell) => (cell.a - a) ** 2 + (cell.b - b) ** 2;
      const best = cells.reduce((one, other) => (apart(other) < apart(one) ? other : one));
      const size = SIDE / (n + 1);
      this.names.append(element("text", {
        x: left(best.a) + size / 2, y: top(best.b) + size / 2 + 5,
      }, NAMES[label]));
    }
  }

  function move(event) {
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const step = steps[event.key];
    if (!step && event.key !== "Home") return;
    event.preventDefault();
    const a = step ? cursor.a + step[0] : 0, b = step ? cursor.b + step[1] : 0;
    if (a >= 0 && b >= 0 && a + b <= n) select(a, b);
  }

  const votesAs = (minus, tie, plus) => [-1, 0, 1].map((label, place) => [minus, tie, plus][place] / n);
  const maps = [
    new VoteMap("model", (...c) => davidson.decide(model, ...c), (...c) => davidson.probabilities(model, ...c)),
    new VoteMap("majority", davidson.majority, votesAs),
  ];
  maps[0].marked = true;

  // ---- numbers
  function select(a, b) {
    cursor = { a, b };
    for (const map of maps) {
      map.frame.setAttribute("x", left(a));
      map.frame.setAttribute("y", top(b));
    }
    const tie = n - a - b;
    const p = davidson.probabilities(model, b, tie, a), risks = davidson.risks(p);
    const decided = davidson.decide(model, b, tie, a), most = davidson.majority(b, tie, a);
    find("cell").textContent =
      `A ${a}, tie ${tie}, B ${b}: the model says ${NAMES[decided]}, majority vote ${NAMES[most]}.`;
    [...find("cell-numbers").rows].forEach((row, place) => {
      const label = 1 - place; // A first, as a reader expects
      row.classList.toggle("chosen", label === decided);
      row.cells[1].textContent = share(p[label + 1]);
      row.cells[2].textContent = share(risks[label + 1]);
    });
  }

  function draw() {
    if (cursor.a + cursor.b > n) cursor = { a: n, b: 0 };
    const [regions] = maps.map((map) => map.draw());
    const total = ((n + 1) * (n + 2)) / 2;
    const marks = maps[0].marks.childElementCount;
    find("summary").textContent =
      `Of the ${total} ways in which ${n} votes can fall the model gives A to ${regions[1].length}, ` +
      `a tie to ${regions[0].length} and B to ${regions[-1].length}; ` +
      `it differs from majority vote in ${marks}.`;
    select(cursor.a, cursor.b);
    if (find("all-cells").open) list();
  }

  function list() {
    const rows = [];
    everyCell((a, b, tie) => {
      const p = davidson.probabilities(model, b, tie, a);
      const row = document.createElement("tr");
      const decided = NAMES[davidson.decide(model, b, tie, a)];
      const cells = [a, tie, b, share(p[2]), share(p[1]), share(p[0]), decided,
        NAMES[davidson.majority(b, tie, a)]];
      for (const value of cells) row.insertCell().textContent = value;
      rows.push(row);
    });
    find("all-cells").querySelector("tbody").replaceChildren(...rows);
  }
  find("all-cells").addEventListener("toggle", () => find("all-cells").open && list());

  root.hidden = false;
  showControls();
  draw();
})();
