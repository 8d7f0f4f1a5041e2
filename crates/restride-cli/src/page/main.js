// What is chosen, and how everything else follows it.

const report = data.report;
let part = parts[0];
let results = null;
let shownSteps = [];
let rank = [];

const chart = new Chart({ choose: (b, step) => choose(step, b, true), hover: tip });
const steps = new List("steps", (s, row) => stepRow(part, s, row), { choose: (s) => choose(s.at, written(s) || chart.chosen, false) });
const reasons = (id) => new List(id, reasonRow, { choose: (item) => goTo(item[0], item[1]) });
const copies = reasons("copies");
const declined = reasons("declined");

/** The step and the buffer that everything is about. `fromChart`: the list of steps comes along. */
function choose(step, buffer, fromChart = true) {
  chart.step = Math.max(0, Math.min(part.steps.length - 1, step));
  chart.chosen = buffer;
  chart.reveal(chart.step);
  chart.light();
  showLiving();
  showDetails();
  const row = results ? shownSteps.findIndex((s) => s.at === chart.step) : chart.step;
  steps.mark(part.steps.length ? row : -1, fromChart);
}

/** The buffer of the arena that a step writes, if it does. */
const written = (step) => step.writes.map(([, b]) => part.buffers[b]).find((b) => b.owner === ARENA && bytesAt(b, step.at) > 0);

/** To a step of a part, from a list. */
function goTo(number, step) {
  if (number === null || step === null) return;
  if (parts[number] !== part) showPart(parts[number]);
  choose(step, written(part.steps[step]) || null);
}

function showPart(next) {
  part = next;
  byId("part").value = String(part.number);
  chart.show(part);
  chart.step = part.peak ?? 0;
  const notes = [];
  if (part.body) notes.push("A body has an arena of its own, in the scratch of the step that calls it.");
  const called = parts.filter((p) => p.body && p.body.part === part.number);
  if (called.length) notes.push(`Bodies of control flow (${few(called.map((p) => p.body.name), 3)}) count as the scratch of their steps; choose one above to look into it.`);
  if (part.learns) notes.push(`After this piece ${part.learns} runs outside of the arena. What it gives depends on data, so the next piece is placed and planned when that is known.`);
  byId("part-note").textContent = notes.join(" ");
  byId("part-note").hidden = !notes.length;
  byId("to-peak").disabled = part.peak === null;
  find();
  const largest = part.peak === null ? null : living(part, part.peak)[0];
  choose(chart.step, largest || null);
}

// What lives at the chosen step.

function showLiving() {
  const { step, chosen } = chart;
  rank = part.steps.length ? living(part, step) : [];
  const sum = rank.reduce((n, b) => n + bytesAt(b, step), 0);
  byId("living-title").textContent = step === part.peak ? `Who makes up the peak (step ${step.toLocaleString("en-US")})` : `Alive at step ${step.toLocaleString("en-US")}`;
  const name = part.steps.length ? stepName(part, part.steps[step]) : "";
  const all = part.live[step] || 0;
  const blocks = all <= 1.01 * sum ? "" : ` (${bytes(all)} in blocks of 64 B)`;
  byId("living-sum").textContent = `${rank.length} ${rank.length === 1 ? "buffer" : "buffers"}, ${bytes(sum)}${blocks}${name ? `, at ${name}` : ""}`;
  byId("living-sum").title = byId("living-sum").textContent;
  // A few hundred are enough to make up any peak; the rest is summed up.
  const most = 300;
  const rows = rank.slice(0, most).map((b, i) => {
    const maker = makerOf(part, b);
    const n = bytesAt(b, step);
    const row = el("div", `member ${b.look}`);
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", b === chosen);
    row.id = `member-${i}`;
    row.dataset.at = i;
    if (b === chosen) row.classList.add("at");
    const title = cell("b", "", bufferName(part, b));
    const also = b.values.length > 1 ? ` and ${b.values.length - 1} more in its place` : "";
    const from = maker ? [maker.line, shortModule(maker.module), madeBy(part, maker)].filter(Boolean).join(" · ") : "";
    const bar = el("i");
    bar.style.width = `${(100 * n) / Math.max(bytesAt(rank[0], step), 1)}%`;
    if (also) title.append(el("span", "dim", also));
    row.append(title, el("span", "bytes", bytes(n)), origin(from, maker), el("span", "share", percent(n, sum)), el("div", "fill", bar));
    return row;
  });
  if (rank.length > most) {
    const rest = rank.slice(most).reduce((n, b) => n + bytesAt(b, step), 0);
    rows.push(el("div", "none", `${rank.length - most} more, ${bytes(rest)}`));
  }
  if (!rows.length) rows.push(el("div", "none", "Nothing of the arena."));
  const box = byId("living");
  box.replaceChildren(...rows);
  const at = rank.indexOf(chosen);
  if (at >= 0 && at < most) {
    box.setAttribute("aria-activedescendant", `member-${at}`);
    const row = rows[at];
    if (row.offsetTop < box.scrollTop + box.offsetTop || row.offsetTop + row.offsetHeight > box.scrollTop + box.offsetTop + box.clientHeight) {
      box.scrollTop = row.offsetTop - box.offsetTop - box.clientHeight / 2;
    }
  } else box.removeAttribute("aria-activedescendant");
}
function origin(words, maker) {
  const e = el("span", "from", words);
  if (maker) e.title = [stepTitle(part, maker), maker.line, maker.module].filter(Boolean).join("\n");
  return e;
}
byId("living").addEventListener("click", (e) => {
  const row = e.target.closest(".member");
  if (row) choose(chart.step, rank[Number(row.dataset.at)]);
});
byId("living").addEventListener("keydown", (e) => {
  const at = rank.indexOf(chart.chosen);
  const to = { ArrowDown: at + 1, ArrowUp: Math.max(at - 1, 0), Home: 0, End: rank.length - 1 }[e.key];
  if (to === undefined || !rank.length) return;
  e.preventDefault();
  choose(chart.step, rank[Math.max(0, Math.min(rank.length - 1, to))]);
});

// What there is to know of a buffer.

const stepLink = (step) => link(`step ${step.toLocaleString("en-US")}`, () => choose(step, chart.chosen));
function atStep(step) {
  return part.steps[step] ? [stepLink(step), ` ${stepTitle(part, part.steps[step])}`] : null;
}

function showDetails() {
  const b = chart.chosen;
  const body = byId("details-body");
  byId("zoom-block").disabled = !b;
  byId("details-title").textContent = b ? bufferName(part, b) : "Buffer";
  if (!b) {
    body.replaceChildren(el("p", "dim", "Choose a buffer in the chart or in the list."));
    return;
  }
  const maker = makerOf(part, b);
  const values = el("ol");
  for (const v of b.values.slice(0, 100).map((v) => part.values[v])) {
    const made = part.steps[v.made];
    const how = [v.type, bytes(v.bytes), reuseOf(part, v), made && made.line].filter(Boolean).join(" · ");
    const name = v.made === null ? el("span", "", `%${v.name}`) : link(`%${v.name}`, () => choose(v.made, b));
    values.append(el("li", "", name, el("span", "dim", ` ${how}`)));
  }
  if (b.values.length > 100) values.append(el("li", "dim", `… ${b.values.length} in all`));
  const near = (list) => {
    const out = [];
    for (const o of list) out.push(...(out.length ? [", "] : []), link(bufferName(part, o), () => choose(inside(o, chart.step), o)), ` (steps ${o.first}–${o.last})`);
    return out.length ? out : null;
  };
  const bodies = b.frame ? parts.filter((p) => p.body && p.body.part === part.number && p.body.steps.includes(b.scratchOf)) : [];
  const into = bodies.flatMap((p, i) => [...(i ? [", "] : []), link(p.body.name, () => showPart(p))]);
  const varying = b.rects.length > 1;
  body.replaceChildren(facts([
    ["Bytes", `${bytes(b.bytes)}${b.bytes >= 10000 ? ` (${exactly(b.bytes)})` : ""}${varying ? `; ${bytes(bytesAt(b, chart.step))} of it alive here` : ""}`],
    ["Offset", `${b.offset.toLocaleString("en-US")} to ${(b.offset + b.bytes).toLocaleString("en-US")}`],
    ["Source", maker && [maker.line, maker.module].filter(Boolean).join(" · ")],
    ["From", atStep(b.first)],
    ["To", atStep(b.last)],
    ["Bodies", into.length ? into : null],
    [b.values.length > 1 ? `${b.values.length} values` : "Value", b.values.length ? [values] : null],
    ["Earlier here", near(neighbours(part, b, true))],
    ["Later here", near(neighbours(part, b, false))],
  ]));
}

function tip(b, step, x, y) {
  const box = byId("tip");
  box.hidden = !b;
  if (!b) return;
  const maker = makerOf(part, b);
  const values = few(b.values.map((v) => `%${part.values[v].name}`), 6);
  const line = (words, className) => (words ? [el("div", className || "", words)] : []);
  const reused = b.values.map((v) => part.values[v]).map((v) => reuseOf(part, v)).filter((r) => r.startsWith("in place over"));
  box.replaceChildren(
    el("b", "", b.scratchOf === null && values ? values : bufferName(part, b)),
    ...line(`${bytes(b.bytes)} at offset ${b.offset.toLocaleString("en-US")}`),
    ...line(b.rects.length > 1 ? `${bytes(bytesAt(b, step))} of it alive at step ${step}` : ""),
    ...line(maker && [maker.line, maker.module].filter(Boolean).join(" · ")),
    ...line(`from step ${b.first} (${stepName(part, part.steps[b.first])}) to step ${b.last} (${stepName(part, part.steps[b.last])})`),
    ...line(few([...new Set(reused)], 3)),
    ...line(`pointer at step ${step}`, "tip-dim"),
  );
  Object.assign(box.dataset, { buffer: b.at, offset: b.offset, bytes: b.bytes, first: b.first, last: b.last });
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(4, x + 16 + width > window.innerWidth ? x - width - 16 : x + 16)}px`;
  box.style.top = `${Math.max(4, y + 18 + height > window.innerHeight ? y - height - 12 : y + 18)}px`;
}

// Keys in the chart.

function say() {
  const b = chart.chosen;
  const step = part.steps[chart.step];
  const what = b ? `${bufferName(part, b)}, ${bytes(b.bytes)}, offset ${b.offset}, steps ${b.first} to ${b.last}; ` : "";
  byId("announce").textContent = `${what}step ${chart.step}, ${stepName(part, step)}, ${bytes(part.live[chart.step])} alive in ${rank.length} buffers`;
}
/** The buffer that is chosen when the step changes: the same while it lives, otherwise one at its bytes. */
function follow(step) {
  const b = chart.chosen;
  if (!b || bytesAt(b, step) > 0) return b;
  const alive = living(part, step);
  const near = (o) => Math.max(0, offsetAt(o, step) - b.offset, b.offset - offsetAt(o, step) - bytesAt(o, step));
  return alive.length ? alive.reduce((x, o) => (near(o) < near(x) ? o : x)) : null;
}
function toStep(step) {
  const to = Math.max(0, Math.min(part.steps.length - 1, step));
  choose(to, follow(to));
}
function toNext(up) {
  const alive = living(part, chart.step).sort((a, b) => offsetAt(a, chart.step) - offsetAt(b, chart.step));
  if (!alive.length) return;
  const at = alive.indexOf(chart.chosen);
  const to = at < 0 ? (up ? 0 : alive.length - 1) : at + (up ? 1 : -1);
  choose(chart.step, alive[Math.max(0, Math.min(alive.length - 1, to))]);
}
function toPeak() {
  if (part.peak !== null) choose(part.peak, living(part, part.peak)[0]);
}
chart.box.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || !part.steps.length) return;
  const by = e.shiftKey ? 10 : 1;
  const b = chart.chosen;
  const keys = {
    ArrowLeft: () => toStep(chart.step - by), ArrowRight: () => toStep(chart.step + by),
    ArrowUp: () => toNext(true), ArrowDown: () => toNext(false),
    Home: () => toStep(0), End: () => toStep(part.steps.length - 1),
    PageUp: () => toStep(chart.step - Math.ceil((chart.to - chart.from) / 2)), PageDown: () => toStep(chart.step + Math.ceil((chart.to - chart.from) / 2)),
    "[": () => b && choose(b.first, b), "]": () => b && choose(b.last, b),
    p: toPeak, P: toPeak, "+": () => chart.zoom(0.5), "=": () => chart.zoom(0.5), "-": () => chart.zoom(2), 0: () => chart.all(),
    z: () => b && chart.zoomTo(b), Z: () => b && chart.zoomTo(b),
  };
  if (!keys[e.key]) return;
  e.preventDefault();
  keys[e.key]();
  say();
});
chart.box.addEventListener("focus", () => part.steps.length && say());
byId("to-peak").addEventListener("click", toPeak);
byId("zoom-block").addEventListener("click", () => chart.chosen && chart.zoomTo(chart.chosen));
byId("zoom-in").addEventListener("click", () => chart.zoom(0.5));
byId("zoom-out").addEventListener("click", () => chart.zoom(2));
byId("zoom-all").addEventListener("click", () => chart.all());

// Search: filters the steps and the two lists, and fades all other blocks.

function find() {
  const query = byId("search").value;
  results = search(part, query);
  shownSteps = results ? results.steps : part.steps;
  chart.found = results ? results.buffers : null;
  chart.draw();
  steps.show(shownSteps, results ? "No step has all of these words." : "The program has no steps.");
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (item) => {
    const hay = item.slice(3).map(text).join(" ").toLowerCase();
    return words.every((w) => hay.includes(w));
  };
  const show = (list, all, id, none) => {
    const shown = words.length ? all.filter(has) : all;
    list.show(shown, all.length ? "None has all of these words." : none);
    byId(id).textContent = `${shown.length.toLocaleString("en-US")} · ${bytes(shown.reduce((n, c) => n + c[2], 0))}`;
  };
  show(copies, data.copies, "count-copies", "No copy is left.");
  show(declined, data.declined, "count-declined", "Everything that could be done in place was.");
  byId("count-steps").textContent = shownSteps.length.toLocaleString("en-US");
  const others = results ? parts.reduce((n, p) => n + (p === part ? 0 : search(p, query).steps.length), 0) : 0;
  const elsewhere = others ? `, ${others.toLocaleString("en-US")} in other parts` : "";
  byId("found").textContent = results ? `${shownSteps.length.toLocaleString("en-US")} of ${part.steps.length.toLocaleString("en-US")} steps${elsewhere}` : "";
  const row = shownSteps === part.steps ? chart.step : shownSteps.findIndex((s) => s.at === chart.step);
  steps.mark(part.steps.length ? row : -1, true);
}
let typing = 0;
byId("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(find, part.steps.length > 5000 ? 150 : 30);
});
byId("search").addEventListener("keydown", (e) => {
  if (e.key === "Enter" && results && results.steps.length) {
    const back = e.shiftKey;
    const list = results.steps;
    const next = back ? list.findLast((s) => s.at < chart.step) || list.at(-1) : list.find((s) => s.at > chart.step) || list[0];
    goTo(part.number, next.at);
  } else if (e.key === "Escape" && e.target.value) {
    e.target.value = "";
    find();
    e.preventDefault();
  }
});
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !e.ctrlKey && !e.metaKey && !e.altKey && e.target.id !== "search") {
    e.preventDefault();
    byId("search").focus();
    byId("search").select();
  }
});

// Tabs.

const tabs = [...byId("tabs").querySelectorAll("[role=tab]")];
function showTab(tab, focus) {
  for (const t of tabs) {
    const on = t === tab;
    t.setAttribute("aria-selected", on);
    t.tabIndex = on ? 0 : -1;
    byId(t.getAttribute("aria-controls")).hidden = !on;
  }
  if (focus) tab.focus();
  // A list that was not seen could not be scrolled to what was chosen meanwhile.
  for (const list of [steps, copies, declined]) list.mark(list.chosen, true);
}
for (const tab of tabs) tab.addEventListener("click", () => showTab(tab, false));
byId("tabs").addEventListener("keydown", (e) => {
  const at = tabs.indexOf(document.activeElement);
  const to = { ArrowRight: (at + 1) % tabs.length, ArrowLeft: (at + tabs.length - 1) % tabs.length, Home: 0, End: tabs.length - 1 }[e.key];
  if (at < 0 || to === undefined) return;
  e.preventDefault();
  showTab(tabs[to], true);
});

// Colours: as the system has them, or as chosen here before.

const dark = window.matchMedia("(prefers-color-scheme: dark)");
function theme(choice) {
  const name = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
  document.documentElement.dataset.theme = name;
  chart.draw();
}
function kept() {
  // A page from a file may keep nothing in some browsers.
  try { return localStorage.getItem("restride-theme") || "auto"; } catch { return "auto"; }
}
const chosenTheme = () => byId("theme").querySelector("input:checked").value;
byId("theme").addEventListener("change", () => {
  try { localStorage.setItem("restride-theme", chosenTheme()); } catch { /* for this time only, then */ }
  theme(chosenTheme());
});
dark.addEventListener("change", () => theme(chosenTheme()));

// The page.

function cards() {
  const { plan, placed, checks } = report;
  const peaked = parts.filter((p) => !p.body && p.peak !== null).sort((a, b) => b.live[b.peak] - a.live[a.peak])[0];
  const over = plan.at_least_bytes > 0 ? (100 * (plan.arena_bytes - plan.at_least_bytes)) / plan.at_least_bytes : 0;
  const bound = plan.optimal ? "proved smallest" : `at least ${bytes(plan.at_least_bytes)} (${over < 0.05 ? "within 0.1 %" : `${over.toFixed(1)} % above`})`;
  const at = peaked ? `step ${peaked.peak.toLocaleString("en-US")}` : "none";
  const ok = Object.values(checks).every((c) => c === "ok");
  const add = (id, name, value, more, main) => {
    const card = el("div", main ? "main-card" : "");
    card.id = id;
    card.append(el("dt", "", name), el("dd", "", value, el("small", "", more)));
    byId("cards").append(card);
  };
  add("card-arena", "Arena", bytes(plan.arena_bytes), bound, true);
  add("card-peak", "Peak", at, peaked ? stepName(peaked, peaked.steps[peaked.peak]) : "no intermediates");
  add("card-copies", "Copies left", bytes(placed.copy_bytes), `${placed.copies.toLocaleString("en-US")} of ${placed.steps.toLocaleString("en-US")} steps`);
  add("card-held", "State", bytes(plan.state_bytes), "weights that change");
  add("card-outputs", "Outputs", bytes(plan.output_bytes), `inputs ${bytes(data.input_bytes)}`);
  add("card-weights", "Weights", bytes(data.weight_bytes), "read where they are");
  add("card-checks", "Checks", ok ? "ok" : [...new Set(Object.values(checks))].join(", "), Object.keys(checks).join(", "));
}

byId("program").textContent = report.program || "program";
document.title = `${report.program || "program"} – restride report`;
for (const p of parts) {
  const option = el("option", "", partName(p));
  option.value = String(p.number);
  byId("part").append(option);
}
byId("part-label").hidden = parts.length < 2;
byId("part").addEventListener("change", (e) => showPart(parts[Number(e.target.value)]));
cards();
fillTable(byId("table"), "Before and after", data.table.slice(1), data.table[0]);
fillTable(byId("memory"), "Memory", [
  ["arena", exactly(report.plan.arena_bytes)], ["lower bound", exactly(report.plan.lower_bound_bytes)], ["proved", `at least ${exactly(report.plan.at_least_bytes)}`], ["state", exactly(report.plan.state_bytes)],
  ["arena, at any sizes", report.plan.upper_bound_bytes === null ? `not bounded: ${report.plan.unbounded}` : `at most ${exactly(report.plan.upper_bound_bytes)}`],
  ...(report.plan.computed_again ? [["recomputed", `${report.plan.computed_again.toLocaleString("en-US")} nodes, ${exactly(report.plan.computed_again_bytes)}`]] : []),
  ...report.learns.map((node) => ["memory when size is known", `what comes after ${node}`]),
  ...(report.plan.constant_bytes ? [["computed once", exactly(report.plan.constant_bytes)]] : []),
  ...(report.plan.packed_bytes ? [["packed weights", exactly(report.plan.packed_bytes)]] : []),
  ["outputs", exactly(report.plan.output_bytes)], ["inputs", exactly(data.input_bytes)], ["weights", exactly(data.weight_bytes)],
  ...Object.entries(report.checks).map(([name, said]) => [`check: ${name}`, said]),
]);
fillTable(byId("times"), `Time, restride ${data.version}`, Object.entries(report.time_us).map(([name, us]) => [name, `${(us / 1e3).toFixed(2)} ms`]));
const start = kept();
const radio = byId("theme").querySelector(`input[value="${["light", "dark"].includes(start) ? start : "auto"}"]`);
radio.checked = true;
theme(radio.value);
// The piece with the largest arena is looked at first.
const more = (a, b) => a.arena_bytes - b.arena_bytes || a.steps.length - b.steps.length;
const largest = parts.reduce((best, p) => (p.body === null && more(p, best) > 0 ? p : best), parts[0]);
showPart(largest);

// For tests, and for a console: what is shown, and where a buffer's middle and its size are on the screen.
window.restrideReport = {
  first: largest.number,
  get piece() { return part.piece; },
  get steps() { return part.steps.length; },
  get view() { return [chart.from, chart.to]; },
  get found() { return chart.found && [...chart.found].map((b) => part.buffers[b]).map((b) => [b.offset, b.bytes, b.first, b.last]); },
  point([offset, size, first, last]) {
    const b = part.arena.find((o) => o.offset === offset && o.bytes === size && o.first === first && o.last === last);
    // The largest of what is drawn of it.
    const drawn = b ? b.rects.map((r) => chart.onScreen(r)).filter(Boolean) : [];
    const s = drawn.sort((x, y) => y.width * y.height - x.width * x.height)[0];
    const box = chart.box.getBoundingClientRect();
    return s ? { x: box.left + s.left + s.width / 2, y: box.top + s.top + s.height / 2, width: s.width, height: s.height } : null;
  },
};
