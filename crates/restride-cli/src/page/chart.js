// The chart: buffers of the arena as blocks, steps to the right and bytes upwards.

const MARGIN = { left: 72, right: 14, top: 24, bottom: 26 };
const MIN_STEPS = 4;

/** Draws one part. `on` has what happens: `choose(buffer, step)`, `hover(buffer, step, x, y)`, `view()`. */
class Chart {
  constructor(on) {
    this.on = on;
    this.box = byId("chart");
    this.blocks = byId("blocks");
    this.marks = byId("marks");
    this.overview = byId("overview");
    // All blocks as they are when nothing is chosen: drawn anew only when the view changes.
    this.ground = document.createElement("canvas");
    this.part = null;
    this.step = 0;
    this.chosen = null;
    this.hovered = null;
    this.found = null;
    this.from = 0;
    this.to = 1;
    this.due = 0;
    this.pointer();
    this.dragOverview();
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  show(part) {
    this.part = part;
    this.chosen = this.hovered = this.found = null;
    [this.from, this.to] = [0, Math.max(part.steps.length, 1)];
    byId("empty").hidden = part.arena.length > 0;
    this.draw();
  }

  // Geometry. The view is the steps [from, to), which may be parts of steps.

  get width() { return this.box.clientWidth - MARGIN.left - MARGIN.right; }
  get height() { return this.box.clientHeight - MARGIN.top - MARGIN.bottom; }
  x(step) { return MARGIN.left + ((step - this.from) / (this.to - this.from)) * this.width; }
  y(byte) { return MARGIN.top + this.height * (1 - byte / this.part.top); }
  stepAt(x) {
    const step = Math.floor(this.from + ((x - MARGIN.left) / this.width) * (this.to - this.from));
    return Math.max(0, Math.min(this.part.steps.length - 1, step));
  }
  byteAt(y) { return (1 - (y - MARGIN.top) / this.height) * this.part.top; }

  /** The block at a point: where blocks are thinner than a pixel, the largest of those near. */
  at(x, y) {
    if (!this.part || x < MARGIN.left || x > MARGIN.left + this.width) return null;
    const exact = this.from + ((x - MARGIN.left) / this.width) * (this.to - this.from);
    const byte = this.byteAt(y);
    const slack = { steps: ((this.to - this.from) / this.width) * 1.5, bytes: (this.part.top / this.height) * 2 };
    let near = null;
    for (const b of this.part.arena) {
      for (const r of b.rects) {
        if (r.first <= exact && exact < r.last + 1 && r.offset <= byte && byte < r.offset + r.bytes) return b;
        const close = r.first - slack.steps <= exact && exact < r.last + 1 + slack.steps
          && r.offset - slack.bytes <= byte && byte < r.offset + r.bytes + slack.bytes;
        if (close && (!near || r.bytes > near.bytes)) near = b;
      }
    }
    return near;
  }

  // The view.

  view(from, to) {
    const all = Math.max(this.part.steps.length, 1);
    const span = Math.min(all, Math.max(to - from, Math.min(MIN_STEPS, all)));
    this.from = Math.max(0, Math.min(all - span, from));
    this.to = this.from + span;
    this.draw();
  }
  zoom(factor, center) {
    const at = center ?? Math.max(this.from, Math.min(this.to, this.step + 0.5));
    let [from, to] = [at - (at - this.from) * factor, at + (this.to - at) * factor];
    // The chosen step stays in view as a whole.
    if (center === undefined && at === this.step + 0.5) [from, to] = [Math.min(from, this.step), Math.max(to, this.step + 1)];
    this.view(from, to);
  }
  all() { this.view(0, this.part.steps.length); }
  pan(steps) { this.view(this.from + steps, this.to + steps); }
  /** Moves a step into view. */
  reveal(step) {
    const span = this.to - this.from;
    if (step < this.from || step + 1 > this.to) this.view(step + 0.5 - span / 2, step + 0.5 + span / 2);
  }
  zoomTo(buffer) {
    const life = buffer.last - buffer.first + 1;
    const room = Math.max(life * 0.25, 3);
    this.view(buffer.first - room, buffer.last + 1 + room);
  }

  // Drawing, once a frame and no more than is needed: all blocks for another view, those that live for another step,
  // marks on top with each move of the pointer.

  draw() {
    this.stale = true;
    this.light();
  }
  light() {
    this.unlit = true;
    this.mark();
  }
  mark() {
    if (this.due) return;
    this.due = requestAnimationFrame(() => {
      this.due = 0;
      if (!this.part || this.width <= 0) return;
      if (this.stale) {
        this.drawGround();
        this.drawOverview();
      }
      if (this.unlit) this.drawLiving();
      this.stale = this.unlit = false;
      this.drawMarks();
    });
  }
  colours() {
    const style = getComputedStyle(document.documentElement);
    return new Proxy({}, { get: (_, name) => style.getPropertyValue(`--${name.replace("_", "-")}`).trim() });
  }
  /** A clear canvas of the size that another one has on the screen. */
  canvas(canvas, like = canvas) {
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [like.clientWidth, like.clientHeight];
    if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
    }
    const g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, w, h);
    g.font = "12px system-ui, sans-serif";
    return g;
  }
  /** A rectangle on the screen, at least a pixel each way; null outside of the view. */
  onScreen(r) {
    if (r.last + 1 <= this.from || r.first >= this.to || r.bytes <= 0) return null;
    const left = Math.max(this.x(r.first), MARGIN.left);
    const right = Math.min(this.x(r.last + 1), MARGIN.left + this.width);
    const top = this.y(r.offset + r.bytes);
    return { left, top, width: Math.max(right - left, 1), height: Math.max(this.y(r.offset) - top, 1) };
  }

  drawGround() {
    const g = this.canvas(this.ground, this.blocks);
    this.axes(g, this.colours());
    this.drawBlocks(g, this.part.arena, false);
  }
  drawLiving() {
    const g = this.canvas(this.blocks);
    g.save();
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.drawImage(this.ground, 0, 0);
    g.restore();
    this.drawBlocks(g, this.part.arena.filter((b) => bytesAt(b, this.step) > 0), true);
  }
  drawBlocks(g, blocks, lives) {
    const c = this.colours();
    const [strong, soft] = lives ? ["", "_soft"] : ["_soft", ""];
    const fill = {};
    for (const look of ["computed", "copied", "working"]) fill[look] = c[look + strong];
    const hatched = c[`working${soft}`];
    const ink = lives ? c.on_strong : c.on_soft;
    g.save();
    g.beginPath();
    g.rect(MARGIN.left, MARGIN.top - 1, this.width, this.height + 2);
    g.clip();
    const labels = [];
    for (const b of blocks) {
      const faded = this.found && !this.found.has(b.at);
      g.globalAlpha = faded ? 0.18 : 1;
      g.fillStyle = fill[b.look];
      let widest = null;
      for (const r of b.rects) {
        const s = this.onScreen(r);
        if (!s) continue;
        // A gap between blocks, where there is room for one.
        const [gapX, gapY] = [s.width > 3 ? 0.5 : 0, s.height > 3 ? 0.5 : 0];
        g.fillRect(s.left + gapX, s.top + gapY, s.width - 2 * gapX, s.height - 2 * gapY);
        if (b.look === "working" && s.width > 6 && s.height > 6) this.hatch(g, s, hatched);
        if (s.width > 46 && s.height > 13 && (!widest || s.width * s.height > widest.width * widest.height)) widest = s;
      }
      if (widest && !faded) labels.push([b, widest]);
    }
    g.globalAlpha = 1;
    for (const [b, s] of labels) this.label(g, b, s, ink);
    g.restore();
  }
  hatch(g, s, colour) {
    g.save();
    g.beginPath();
    g.rect(s.left, s.top, s.width, s.height);
    g.clip();
    g.strokeStyle = colour;
    g.lineWidth = 1.5;
    g.beginPath();
    for (let x = s.left - s.height; x < s.left + s.width; x += 8) {
      g.moveTo(x, s.top + s.height);
      g.lineTo(x + s.height, s.top);
    }
    g.stroke();
    g.restore();
  }
  label(g, b, s, colour) {
    g.save();
    g.beginPath();
    g.rect(s.left + 2, s.top, s.width - 4, s.height);
    g.clip();
    const name = bufferName(this.part, b);
    const two = s.height > 32;
    g.textBaseline = "middle";
    if (b.look === "working") {
      // On a ground of its own, as hatching makes text hard to read.
      const width = Math.min(g.measureText(name).width + 6, s.width - 4);
      g.fillStyle = this.colours().panel;
      g.fillRect(s.left + 3, s.top + s.height / 2 - (two ? 16 : 8), width, two ? 32 : 16);
      colour = this.colours().ink;
    }
    g.fillStyle = colour;
    g.fillText(name, s.left + 6, s.top + s.height / 2 - (two ? 8 : 0));
    if (two) g.fillText(bytes(b.bytes), s.left + 6, s.top + s.height / 2 + 8);
    g.restore();
  }

  axes(g, c) {
    const bottom = MARGIN.top + this.height;
    g.fillStyle = c.dim;
    g.strokeStyle = c.line;
    g.lineWidth = 1;
    g.textAlign = "right";
    g.textBaseline = "middle";
    for (const byte of this.part.arena.length ? ticks(0, this.part.top, this.height / 60) : []) {
      g.beginPath();
      g.moveTo(MARGIN.left, Math.round(this.y(byte)) + 0.5);
      g.lineTo(MARGIN.left + this.width, Math.round(this.y(byte)) + 0.5);
      g.stroke();
      g.fillText(bytes(byte).replace(".0 ", " "), MARGIN.left - 8, this.y(byte));
    }
    g.textAlign = "center";
    g.textBaseline = "top";
    for (const step of ticks(this.from, this.to - 1, this.width / 90)) {
      if (!Number.isInteger(step) || step >= this.part.steps.length) continue;
      const x = this.x(step + 0.5);
      g.beginPath();
      g.moveTo(x, bottom);
      g.lineTo(x, bottom + 4);
      g.stroke();
      g.fillText(step.toLocaleString("en-US"), x, bottom + 7);
    }
    g.textAlign = "left";
    g.fillText("step", 8, bottom + 7);
  }

  drawMarks() {
    const g = this.canvas(this.marks);
    const c = this.colours();
    const { part } = this;
    const right = MARGIN.left + this.width;
    this.outline(g, this.hovered, 1.5, c);
    this.outline(g, this.chosen, 3, c);
    // The lower bound.
    const bound = Math.round(this.y(part.lower_bound_bytes)) + 0.5;
    if (part.arena.length) {
      g.strokeStyle = c.bound;
      g.lineWidth = 1.5;
      g.setLineDash([6, 4]);
      g.beginPath();
      g.moveTo(MARGIN.left, bound);
      g.lineTo(right, bound);
      g.stroke();
      g.setLineDash([]);
    }
    g.save();
    g.beginPath();
    g.rect(MARGIN.left - 6, 0, this.width + 12, this.box.clientHeight);
    g.clip();
    // The chosen step, and the peak's own.
    const [x0, x1] = [this.x(this.step), this.x(this.step + 1)];
    if (part.steps.length) {
      g.fillStyle = c.accent;
      g.globalAlpha = 0.14;
      g.fillRect(x0, MARGIN.top, Math.max(x1 - x0, 2), this.height);
      g.globalAlpha = 1;
      g.fillRect(Math.round((x0 + x1) / 2) - 0.5, MARGIN.top - 4, 1.5, this.height + 8);
    }
    g.textBaseline = "middle";
    const taken = [];
    if (part.peak !== null) taken.push(this.flag(g, this.x(part.peak + 0.5), "peak", c.bound, c.panel, this.step === part.peak));
    if (part.peak !== this.step && part.steps.length) taken.push(this.flag(g, (x0 + x1) / 2, `step ${this.step.toLocaleString("en-US")}`, c.accent, c.panel, true));
    g.restore();
    if (part.arena.length) {
      const same = part.arena_bytes === part.lower_bound_bytes;
      const proved = part.optimal ? " (arena proved smallest)" : part.at_least_bytes > part.lower_bound_bytes ? ` (proved: at least ${bytes(part.at_least_bytes)})` : "";
      const words = same ? `lower bound = arena: ${bytes(part.arena_bytes)}` : `lower bound ${bytes(part.lower_bound_bytes)}${proved}`;
      g.font = "12px system-ui, sans-serif";
      const width = g.measureText(words).width + 10;
      // Above the line at a side where no flag is; else below it.
      const free = (left) => taken.every(([from, to]) => to < left || left + width < from);
      const side = [right - width, MARGIN.left].find(free);
      const left = side ?? right - width;
      const y = side === undefined ? bound + 11 : Math.max(bound - 10, 10);
      g.fillStyle = c.panel;
      g.fillRect(left, y - 8, width, 16);
      g.fillStyle = c.bound;
      g.textBaseline = "middle";
      g.textAlign = "left";
      g.fillText(words, left + 5, y);
    }
  }
  /** A line around all that a buffer is: around each rectangle, and what of that lies in another one is taken away. */
  outline(g, b, width, c) {
    const drawn = b ? b.rects.map((r) => this.onScreen(r)).filter(Boolean) : [];
    g.save();
    g.beginPath();
    g.rect(MARGIN.left - 3, MARGIN.top - 4, this.width + 6, this.height + 8);
    g.clip();
    g.lineJoin = "round";
    for (const [more, colour] of [[1, c.panel], [0, c.ink]]) {
      g.strokeStyle = colour;
      g.lineWidth = 2 * (width + more);
      for (const s of drawn) g.strokeRect(s.left, s.top, s.width, s.height);
    }
    for (const s of drawn) g.clearRect(s.left, s.top, s.width, s.height);
    g.restore();
  }
  /** A flag at a step; gives back from where to where it reaches. */
  flag(g, x, words, colour, ground, filled) {
    const width = g.measureText(words).width + 12;
    const left = Math.max(MARGIN.left - 4, Math.min(MARGIN.left + this.width + 4 - width, x - width / 2));
    g.fillStyle = filled ? colour : ground;
    g.strokeStyle = colour;
    g.lineWidth = 1;
    g.beginPath();
    g.roundRect(left, 2, width, 17, 4);
    g.fill();
    g.stroke();
    g.beginPath();
    g.moveTo(x - 4, 19);
    g.lineTo(x + 4, 19);
    g.lineTo(x, 24);
    g.fillStyle = colour;
    g.fill();
    g.fillStyle = filled ? ground : colour;
    g.textAlign = "left";
    g.fillText(words, left + 6, 11);
    return [left, left + width];
  }

  /** Bytes alive over all steps, with the view in it. */
  drawOverview() {
    const g = this.canvas(this.overview);
    const c = this.colours();
    const { live, lower_bound_bytes } = this.part;
    const height = this.overview.clientHeight - 2;
    const width = this.width;
    const most = Math.max(lower_bound_bytes, 1);
    g.fillStyle = c.page;
    g.fillRect(MARGIN.left, 0, width, height + 2);
    g.fillStyle = c.computed_soft;
    g.strokeStyle = c.computed;
    g.beginPath();
    g.moveTo(MARGIN.left, height + 1);
    for (let x = 0; x < width; x++) {
      const from = Math.floor((x / width) * live.length);
      const to = Math.max(from + 1, Math.floor(((x + 1) / width) * live.length));
      let top = 0;
      for (let i = from; i < to && i < live.length; i++) top = Math.max(top, live[i]);
      const y = height + 1 - (top / most) * (height - 4);
      g.lineTo(MARGIN.left + x, y);
      g.lineTo(MARGIN.left + x + 1, y);
    }
    g.lineTo(MARGIN.left + width, height + 1);
    g.fill();
    g.stroke();
    const all = Math.max(this.part.steps.length, 1);
    const [a, b] = [this.from, this.to].map((s) => MARGIN.left + (s / all) * width);
    g.fillStyle = c.accent;
    g.globalAlpha = b - a < width - 1 ? 0.2 : 0;
    g.fillRect(a, 0, b - a, height + 2);
    g.globalAlpha = 1;
    g.strokeStyle = c.accent;
    if (b - a < width - 1) g.strokeRect(a + 0.5, 0.5, Math.max(b - a - 1, 1), height + 1);
    if (this.part.peak !== null) {
      g.fillStyle = c.bound;
      g.fillRect(MARGIN.left + ((this.part.peak + 0.5) / all) * width - 1, 0, 2, height + 2);
    }
    g.fillStyle = c.dim;
    g.textAlign = "right";
    g.textBaseline = "middle";
    g.fillText("alive", MARGIN.left - 8, height / 2 + 1);
  }

  // The pointer: hover shows, a click chooses, a drag pans, the wheel with Ctrl zooms.

  pointer() {
    let down = null;
    const place = (e) => {
      const box = this.box.getBoundingClientRect();
      return [e.clientX - box.left, e.clientY - box.top];
    };
    this.marks.addEventListener("pointerdown", (e) => {
      if (e.button !== 0 || !this.part) return;
      down = { x: e.clientX, from: this.from, to: this.to, moved: false };
      this.marks.setPointerCapture(e.pointerId);
    });
    this.marks.addEventListener("pointermove", (e) => {
      if (!this.part) return;
      if (down && (down.moved || Math.abs(e.clientX - down.x) > 4)) {
        down.moved = true;
        this.marks.classList.add("panning");
        this.on.hover(null);
        const steps = ((down.x - e.clientX) / this.width) * (down.to - down.from);
        this.view(down.from + steps, down.to + steps);
        return;
      }
      const [x, y] = place(e);
      this.hover(this.at(x, y), x, e);
    });
    this.marks.addEventListener("pointerup", (e) => {
      if (!down) return;
      if (!down.moved) {
        const [x, y] = place(e);
        const buffer = this.at(x, y);
        if (this.part.steps.length) this.on.choose(buffer, buffer ? inside(buffer, this.stepAt(x)) : this.stepAt(x));
      }
      down = null;
      this.marks.classList.remove("panning");
    });
    this.marks.addEventListener("pointercancel", () => {
      down = null;
      this.marks.classList.remove("panning");
    });
    this.marks.addEventListener("pointerleave", () => this.hover(null));
    this.marks.addEventListener("dblclick", (e) => {
      const [x] = place(e);
      this.zoom(e.shiftKey ? 2 : 0.5, this.stepAt(x) + 0.5);
    });
    this.box.addEventListener("wheel", (e) => {
      if (!this.part) return;
      const [x] = place(e);
      if (e.ctrlKey || e.metaKey) this.zoom(Math.exp(Math.max(-60, Math.min(60, e.deltaY)) / 150), this.stepAt(x) + 0.5);
      else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan((((e.deltaX || e.deltaY) / this.width) * (this.to - this.from)));
      else return;
      e.preventDefault();
    }, { passive: false });
  }
  hover(buffer, x, e) {
    if (buffer !== this.hovered) {
      this.hovered = buffer;
      this.mark();
    }
    if (buffer) this.on.hover(buffer, this.stepAt(x), e.clientX, e.clientY);
    else this.on.hover(null);
  }
  dragOverview() {
    const go = (e) => {
      const box = this.overview.getBoundingClientRect();
      const step = ((e.clientX - box.left - MARGIN.left) / this.width) * this.part.steps.length;
      const half = (this.to - this.from) / 2;
      this.view(step - half, step + half);
    };
    this.overview.addEventListener("pointerdown", (e) => {
      if (!this.part) return;
      this.overview.setPointerCapture(e.pointerId);
      // From the view of everything a drag has to start with a part of it.
      if (this.to - this.from >= this.part.steps.length) this.zoom(0.2);
      go(e);
    });
    this.overview.addEventListener("pointermove", (e) => {
      if (this.part && this.overview.hasPointerCapture(e.pointerId)) go(e);
    });
  }
}

/** A step of a buffer's life, the one meant if it is one. */
const inside = (b, step) => Math.max(b.first, Math.min(b.last, step));

/** Round numbers between two, about as many as asked for. */
function ticks(from, to, count) {
  const raw = Math.max((to - from) / Math.max(count, 1), 1e-9);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max(1, [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw));
  const out = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) out.push(t);
  return out;
}
