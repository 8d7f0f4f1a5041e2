// What the page shows: the data in its script element, and words for it. `page/mod.rs` writes the data.

const data = JSON.parse(document.getElementById("data").textContent);
const text = (n) => (n < 0 ? "" : data.strings[n]);
const KINDS = ["compute", "copy", "move", "view"];
const ARENA = 0;

/** A step: what it does, its node, and what it reads and writes as [value, buffer] pairs. */
function stepOf(row, at) {
  const pairs = (flat) => Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1]]);
  const [kind, results, op, line, module, reads, writes, scratch, bytes] = row;
  return {
    at, kind: KINDS[kind], results: text(results), op: text(op), line: text(line), module: text(module),
    reads: pairs(reads), writes: pairs(writes), scratch, bytes,
  };
}

function bufferOf(row, at) {
  const [owner, name, offset, bytes, first, last, life, values, scratchOf, frame] = row;
  const rects = [];
  for (let i = 0; i < life.length; i += 4) rects.push({ first: life[i], last: life[i + 1], offset: life[i + 2], bytes: life[i + 3] });
  return { at, owner, owned: text(name), offset, bytes, first, last, rects, values, scratchOf, frame, look: "computed" };
}

function valueOf(row) {
  const [name, type, bytes, buffer, made, read, reuse] = row;
  return { name: text(name), type: text(type), bytes, buffer, made, read, reuse: reuse.map(([kind, over]) => ({ kind: text(kind), over: text(over) })) };
}

/** Steps with an arena of their own. */
function partOf(raw, number) {
  const part = { ...raw, number, steps: raw.steps.map(stepOf), buffers: raw.buffers.map(bufferOf), values: raw.values.map(valueOf) };
  for (const b of part.buffers) {
    if (b.scratchOf !== null) b.look = "working";
    // A copy into fresh memory counts as a copy, whatever the memory holds later.
    else if (part.steps[b.first] && ["copy", "move"].includes(part.steps[b.first].kind)) b.look = "copied";
  }
  part.arena = part.buffers.filter((b) => b.owner === ARENA && b.rects.some((r) => r.bytes > 0));
  part.top = Math.max(part.arena_bytes, part.lower_bound_bytes, 1);
  return part;
}

const parts = data.parts.map(partOf);

/** Bytes for people, as the command prints them. */
function bytes(n) {
  if (n < 10000) return `${n} B`;
  return n < 1e7 ? `${(n / 1e3).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`;
}
const exactly = (n) => `${n.toLocaleString("en-US")} B`;
const percent = (part, whole) => (whole > 0 ? `${((100 * part) / whole).toFixed(part >= whole || part / whole > 0.1 ? 0 : 1)} %` : "");
const shortOp = (op) => op.replace(/^aten\./, "").replace(/\.default$/, "");

/** Names for a list, cut after a few. */
function few(names, most) {
  const shown = names.slice(0, most).join(", ");
  return names.length > most ? `${shown}, … (${names.length})` : shown;
}

/** What a step does in one line, as `%c = add.Tensor(%a, %b)`. */
function stepTitle(part, step) {
  const names = (list) => few(list.map(([v]) => `%${part.values[v].name}`), 4);
  if (step.kind === "move") {
    const [value, to] = step.writes[0] || [];
    return value === undefined ? "move" : `move %${part.values[value].name} to ${where(part, to)}`;
  }
  const results = step.results ? few(step.results.split(", "), 4) + " = " : "";
  return `${results}${shortOp(step.op)}(${names(step.reads)})`;
}

/** The node of a step without its operands. */
function stepName(part, step) {
  if (step.kind === "move") return stepTitle(part, step);
  return `${step.results ? few(step.results.split(", "), 2) + " = " : ""}${shortOp(step.op)}`;
}

const where = (part, buffer) => part.buffers[buffer].owned;

/** What a buffer is called: after the first value in it. */
function bufferName(part, b) {
  if (b.scratchOf !== null) return `scratch of ${part.steps[b.scratchOf].results || shortOp(part.steps[b.scratchOf].op)}`;
  if (b.values.length) return `%${part.values[b.values[0]].name}`;
  const step = part.steps[b.first];
  const moved = step && step.writes.find(([, to]) => to === b.at);
  return moved ? `copy of %${part.values[moved[0]].name}` : b.owned;
}

/** The step that a buffer's first content comes from. */
const makerOf = (part, b) => part.steps[b.scratchOf !== null ? b.scratchOf : b.first];

/** What a step does in a word or two. */
const madeBy = (part, step) => (step.kind === "move" ? `copy of ${step.writes.map(([v]) => `%${part.values[v].name}`)}` : shortOp(step.op));

/** The end of a module's path, which says more than its beginning. */
function shortModule(module) {
  let rest = module;
  while (rest.length > 24 && rest.includes(".")) rest = rest.slice(rest.indexOf(".") + 1);
  return rest === module ? module : `…${rest}`;
}

/** Bytes of the arena that a buffer takes at a step, and the offset of the lowest of them. */
function bytesAt(b, step) {
  let sum = 0;
  for (const r of b.rects) if (r.first <= step && step <= r.last) sum += r.bytes;
  return sum;
}
function offsetAt(b, step) {
  let lowest = Infinity;
  for (const r of b.rects) if (r.first <= step && step <= r.last) lowest = Math.min(lowest, r.offset);
  return lowest;
}

/** Buffers of the arena that live at a step, largest first. */
function living(part, step) {
  const alive = part.arena.filter((b) => b.first <= step && step <= b.last && bytesAt(b, step) > 0);
  return alive.sort((a, b) => bytesAt(b, step) - bytesAt(a, step) || a.offset - b.offset || a.at - b.at);
}

/** Buffers that lay on some of the same bytes just before, or come to lie there just after: nearest first. */
function neighbours(part, b, before) {
  const meets = (o) => o.rects.some((x) => b.rects.some((y) => x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes));
  const side = part.arena.filter((o) => o !== b && (before ? o.last < b.first : o.first > b.last) && meets(o));
  return side.sort((x, y) => (before ? y.last - x.last : x.first - y.first)).slice(0, 3);
}

/** How a value came to lie where it does. */
function reuseOf(part, value) {
  const on = value.reuse.find((r) => r.kind === "computed in a dying operand" || r.kind === "scatter written into its base");
  if (on) return on.over ? `in place over ${on.over}` : "in place";
  const other = value.reuse[0];
  if (other) return other.over ? `${other.kind}: ${other.over}` : other.kind;
  return value.made === null ? "given" : "";
}

/** What can be searched of a step: its values, operator, source line and module. */
function haystack(part, step) {
  if (step.hay === undefined) {
    // Of a move the node is the one that made the value: its operator is not what runs.
    const what = step.kind === "move" ? `move ${step.writes.map(([v]) => `%${part.values[v].name}`).join(" ")}` : `${step.results} ${step.op}`;
    step.hay = `${what} ${step.line} ${step.module}`.toLowerCase();
  }
  return step.hay;
}

/** The steps that have all of the words, and the arena's buffers that these write or work in; null without words. */
function search(part, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return null;
  const steps = part.steps.filter((s) => words.every((w) => haystack(part, s).includes(w)));
  const buffers = new Set();
  for (const s of steps) {
    for (const [, b] of s.writes) if (part.buffers[b].owner === ARENA) buffers.add(b);
    if (s.scratch !== null) buffers.add(s.scratch);
  }
  return { steps, buffers };
}

/** What a part is called, for the choice of one. */
function partName(part) {
  const pieces = 1 + Math.max(...parts.map((p) => p.piece));
  const piece = pieces > 1 ? `piece ${part.piece + 1} of ${pieces}` : "program";
  if (!part.body) return `${piece} – arena ${bytes(part.arena_bytes)}`;
  const caller = parts[part.body.part];
  const call = part.body.steps.length ? caller.steps[part.body.steps[0]] : null;
  const by = call ? `, called by ${stepName(caller, call)}` : "";
  return `body ${part.body.name}${by} – arena ${bytes(part.arena_bytes)}`;
}

/** An element with text. Names come from files: they are set as text, never as markup. */
function el(tag, className, ...content) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  e.append(...content);
  return e;
}
const byId = (id) => document.getElementById(id);
