// Lists: rows are made only for what is in sight, so that a hundred thousand of them stay fluid.

const ROW = 28;
// Browsers draw nothing past some millions of pixels; beyond that, rows are closer on the scroll bar than on the screen.
const MOST = 8e6;

/** A list with one row chosen, by pointer or keys. `make(item, row)` fills a row; `on.choose(item, at)` is told. */
class List {
  constructor(id, make, on) {
    this.box = byId(id);
    this.make = make;
    this.on = on;
    this.items = [];
    this.at = -1;
    this.chosen = -1;
    this.all = el("div", "all");
    this.all.setAttribute("role", "presentation");
    this.box.append(this.all);
    this.box.addEventListener("scroll", () => this.draw(), { passive: true });
    this.box.addEventListener("keydown", (e) => this.key(e));
    this.box.addEventListener("focus", () => {
      if (this.at < 0 && this.items.length) this.move(Math.max(this.chosen, 0), false);
    });
    this.box.addEventListener("click", (e) => {
      const row = e.target.closest(".row");
      if (row) this.move(Number(row.dataset.at), true);
    });
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  /** Other items; `none` says why there are none. */
  show(items, none) {
    this.items = items;
    this.none = none;
    this.at = this.chosen = -1;
    this.box.scrollTop = 0;
    this.draw();
  }
  get full() { return this.items.length * ROW; }
  get tall() { return Math.min(this.full, MOST); }
  /** First row in sight, as a number with a part. */
  get first() {
    const room = this.tall - this.box.clientHeight;
    return room > 0 ? (this.box.scrollTop / room) * (this.items.length - this.box.clientHeight / ROW) : 0;
  }
  scrollTo(first) {
    const rows = this.items.length - this.box.clientHeight / ROW;
    if (rows > 0) this.box.scrollTop = (Math.max(0, Math.min(rows, first)) / rows) * (this.tall - this.box.clientHeight);
  }
  reveal(at) {
    const seen = this.box.clientHeight / ROW;
    if (at < this.first) this.scrollTo(at);
    else if (at + 1 > this.first + seen) this.scrollTo(at + 1 - seen);
  }
  /** Marks a row as chosen without telling anybody. */
  mark(at, reveal) {
    this.chosen = this.at = at;
    // Rows are in the middle when they come from far away.
    const seen = this.box.clientHeight / ROW;
    if (reveal && at >= 0 && (at < this.first || at + 1 > this.first + seen)) this.scrollTo(at + 0.5 - seen / 2);
    this.draw();
  }
  move(at, choose) {
    if (!this.items.length) return;
    this.at = Math.max(0, Math.min(this.items.length - 1, at));
    if (choose) this.chosen = this.at;
    this.reveal(this.at);
    this.draw();
    if (choose) this.on.choose(this.items[this.at], this.at);
  }
  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1);
    const to = { ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page, Home: 0, End: this.items.length - 1,
      Enter: this.at, " ": this.at }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    this.move(to, true);
  }
  draw() {
    this.all.style.height = `${this.tall}px`;
    const rows = [];
    if (!this.items.length) rows.push(el("div", "none", this.none || "Nothing."));
    const first = this.first;
    const from = Math.max(0, Math.floor(first) - 4);
    const to = Math.min(this.items.length, Math.ceil(first + this.box.clientHeight / ROW) + 4);
    for (let at = from; at < to; at++) {
      const row = el("div", "row");
      row.style.top = `${this.box.scrollTop + (at - first) * ROW}px`;
      row.dataset.at = at;
      row.id = `${this.box.id}-${at}`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-setsize", this.items.length);
      row.setAttribute("aria-posinset", at + 1);
      row.setAttribute("aria-selected", at === this.chosen);
      if (at === this.at) row.classList.add("at");
      this.make(this.items[at], row);
      rows.push(row);
    }
    this.all.replaceChildren(...rows);
    if (this.at >= from && this.at < to) this.box.setAttribute("aria-activedescendant", `${this.box.id}-${this.at}`);
    else this.box.removeAttribute("aria-activedescendant");
  }
}

/** A cell whose whole text is seen on hovering. */
function cell(tag, className, words) {
  const e = el(tag, className, words);
  if (words) e.title = words;
  return e;
}

/** A source line: where there is little room, the file's name is cut and not the number. */
function lineCell(line) {
  const at = line.lastIndexOf(":");
  const e = el("span", "line", el("span", "", at < 0 ? line : line.slice(0, at)), at < 0 ? "" : line.slice(at));
  if (line) e.title = line;
  return e;
}

/** A row of the steps. */
function stepRow(part, step, row) {
  row.classList.add("steps-row");
  if (step.kind === "view") row.classList.add("free");
  const alive = el("span", "num alive");
  const bar = el("i");
  bar.style.width = `${(100 * part.live[step.at]) / Math.max(part.lower_bound_bytes, 1)}%`;
  alive.append(bar, el("b", "", bytes(part.live[step.at])));
  const kind = { compute: "run", copy: "copy", move: "copy", view: "no cost" }[step.kind];
  row.append(
    el("span", "num", step.at.toLocaleString("en-US")),
    alive,
    el("span", `tag ${step.kind}`, el("i"), kind),
    cell("span", "mono", stepTitle(part, step)),
    lineCell(step.line),
    cell("span", "", step.module),
    el("span", "num", step.kind === "view" ? "" : bytes(step.bytes)),
  );
}

/** A copy, or what was not done: `[part, step, bytes, what, where to, why, line, module]`. */
function reasonRow(item, row) {
  const [, , n, what, to, why, line, module] = item;
  row.classList.add("why-row");
  row.append(
    el("span", "num", bytes(n)),
    cell("span", "mono", `${text(what)} `),
    cell("span", "", `${text(to)}: ${text(why)}`),
    lineCell(text(line)),
  );
  row.title = [text(what), text(to), text(why), text(line), text(module)].filter(Boolean).join("\n");
}

/** A button that looks like a link. */
function link(words, go) {
  const e = el("button", "link", words);
  e.type = "button";
  e.addEventListener("click", go);
  return e;
}

/** A list of facts: pairs of a name and text or elements; those without are left out. */
function facts(pairs) {
  const dl = el("dl", "facts");
  for (const [name, what] of pairs) {
    if (what === null || what === undefined || what === "") continue;
    dl.append(el("dt", "", name), el("dd", "", ...(Array.isArray(what) ? what : [what])));
  }
  return dl;
}

/** A table: rows of cells, the first cell of each a head. */
function fillTable(table, caption, rows, head) {
  const line = (cells, heads) => {
    const tr = el("tr");
    cells.forEach((c, i) => {
      const e = el(i === 0 || heads ? "th" : "td", "", c);
      if (i === 0 || heads) e.scope = heads ? "col" : "row";
      tr.append(e);
    });
    return tr;
  };
  table.append(el("caption", "", caption));
  if (head) table.append(el("thead", "", line(head, true)));
  table.append(el("tbody", "", ...rows.map((r) => line(r, false))));
}
