#!/usr/bin/env python3
"""Use the pages of `restride compile --report` in a headless Chromium, as a user would.

For each program: the page opens without an error and requests nothing; its totals are those of `compile --json`; its list of
buffers at the peak, and its text on hovering over blocks, agree with `plan --json`; keys move over steps and buffers, and Tab
reaches all controls; search finds the steps that `show` prints; nothing is wider than a narrow window; colours have enough
contrast, light and dark. --generated adds programs of that many steps, in which scrolling and zooming must be fluid. A program
with hostile names and an empty one are always among them. The last line is `N passed, N failed`.
"""

import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT, Restride
from lib.driver import finish, parser, print_table, scratch

from playwright.sync_api import Error, sync_playwright

ALIGN = 64
# Seconds that nine frames of ten must keep to, without a graphics card, on a busy machine.
FRAME = 0.25


def fail(said):
    raise AssertionError(said)


def same(what, got, want):
    got == want or fail(f"{what}: the page has {got!r}, the command {want!r}")


def aligned(n):
    return -(-n // ALIGN) * ALIGN


def said(n):
    """Bytes as the command prints them."""
    return f"{n} B" if n < 10_000 else f"{n / 1e3:.1f} kB" if n < 10_000_000 else f"{n / 1e6:.1f} MB"


# ---------------------------------------------------------------------------------- programs


def generated(steps):
    """The text of a program of matrix products, with a few dozen values of different sizes alive at a time."""
    rng = random.Random(steps)
    sizes = [8, 16, 32, 64]
    inputs = [(f"x{a}_{b}", a, b) for a in sizes for b in sizes]
    pool, lines = [rng.choice(inputs)], []
    for i in range(steps):
        a = rng.choice(pool)
        if len(pool) > 4 + 10 * (1 + i * 7 // steps % 3):
            pool.remove(a)
        if rng.random() < 0.5:
            b = rng.choice([b for b in inputs if b[1] == a[2]])
        else:
            a, b = rng.choice([b for b in inputs if b[2] == a[1]]), a
        lines.append(f"  %v{i}: f32[{a[1]}, {b[2]}] = aten.mm.default(%{a[0]}, %{b[0]})\n")
        pool.append((f"v{i}", a[1], b[2]))
    arguments = ", ".join(f"%{n}: f32[{a}, {b}]" for n, a, b in inputs)
    results = ", ".join(f"%{n}" for n, _, _ in pool if n.startswith("v"))
    return f"graph({arguments}) {{\n{''.join(lines)}  return {results}\n}}\n"


HOSTILE = "</script><img src=x onerror=window.hostile=1><svg onload=window.hostile=1>\u2028'\"${window.hostile=1}"


NOTHING = "graph(%x: f32[2]) {\n  return %x\n}\n"


def hostile():
    name = HOSTILE.replace('"', '\\"')
    return (
        f'program "{name}"\ngraph(%x: f32[64]) {{\n  %"{name}": f32[64] = aten.relu.default(%x)\n'
        f'  %b: f32[64, 64] = aten.outer.default(%"{name}", %x)\n  %"{name}2": f32[64] = aten.mv.default(%b, %x)\n'
        f'  %d: f32[64, 64] = aten.outer.default(%"{name}2", %x)\n  %c: f32[] = aten.sum.default(%d)\n  return %c\n}}\n'
    )


# ---------------------------------------------------------------------------------- expected contents


class Expected:
    """The command's own data about a program."""

    def __init__(self, report, plan, placed, piece):
        self.report, self.placed = report, placed
        self.rows = plan["buffers"]
        # The page starts with a piece of the largest arena.
        arenas = {}
        for r in self.rows:
            arenas[r["segment"]] = max(arenas.get(r["segment"], 0), r["offset"] + aligned(r["bytes"]))
        same("arena of the first piece that is shown", arenas.get(piece, 0), max(arenas.values(), default=0))
        self.rows = [r for r in self.rows if r["segment"] == piece and r["bytes"] > 0]
        # Which bytes of a buffer are needed when.
        for r in self.rows:
            r["lives"] = r.get("lives") or [
                dict(first_step=r["first_step"], last_step=r["last_step"], to=r["bytes"]) | {"from": 0}
            ]
        steps = 1 + max((r["last_step"] for r in self.rows), default=0)
        changes = [0] * (steps + 1)
        for x in (x for r in self.rows for x in r["lives"]):
            changes[x["first_step"]] += aligned(x["to"] - x["from"])
            changes[x["last_step"] + 1] -= aligned(x["to"] - x["from"])
        live, self.live = 0, []
        for change in changes[:-1]:
            live += change
            self.live.append(live)
        self.peak = self.live.index(max(self.live)) if self.rows else None

    def alive(self, step):
        """Buffers at a step with the bytes that live, largest first."""
        found = []
        for r in self.rows:
            live = [x for x in r["lives"] if x["first_step"] <= step <= x["last_step"]]
            if live:
                lowest = r["offset"] + min(x["from"] for x in live)
                found.append(r | dict(alive=sum(x["to"] - x["from"] for x in live), lowest=lowest))
        return sorted(found, key=lambda r: (-r["alive"], r["offset"]))


WORKING = "scratch of "


def name_of(row):
    """The start of the name that the page gives a buffer."""
    if not row["values"]:
        return ""
    first = row["values"][0]
    # The page names all results of the node.
    return f"{WORKING}%{first.removeprefix(WORKING)}" if first.startswith(WORKING) else "%" + first


# ---------------------------------------------------------------------------------- looking at a page


class Page:
    """A page in a tab. `errors` has exceptions, console errors and warnings, and requests that leave the file."""

    def __init__(self, tab, path):
        self.tab, self.errors = tab, []
        for event in ("pageerror", "console", "request"):
            tab.on(event, getattr(self, event))
        self.resize(1440, 1000)
        self.colours("light")
        start = time.monotonic()
        tab.goto(path.as_uri())
        self.settle()
        self.opened = time.monotonic() - start

    def pageerror(self, error):
        self.errors.append(str(error))

    def console(self, message):
        if message.type in ("error", "warning", "assert"):
            self.errors.append(message.text)

    def request(self, request):
        if not request.url.startswith(("file:", "data:", "about:", "blob:")):
            self.errors.append(f"the page asks for {request.url}")

    def eval(self, script):
        return self.tab.evaluate(script)

    def settle(self):
        """Wait until what was asked for is drawn."""
        self.eval(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))"
        )

    def resize(self, width, height):
        self.tab.set_viewport_size(dict(width=width, height=height))

    def colours(self, name):
        self.tab.emulate_media(color_scheme=name)
        self.settle()

    def move(self, x, y):
        self.tab.mouse.move(x, y)
        self.settle()

    def click(self, x, y):
        self.tab.mouse.click(x, y)
        self.settle()

    def key(self, name):
        self.tab.keyboard.press(name)
        self.settle()

    def type(self, words):
        self.tab.keyboard.insert_text(words)
        self.settle()

    def screenshot(self, path):
        self.tab.screenshot(path=path)

    def text(self, id):
        return self.eval(f"document.getElementById({json.dumps(id)}).innerText").strip()

    def focus(self, id):
        self.eval(f"document.getElementById({json.dumps(id)}).focus()")

    def members(self):
        return self.eval("""[...document.querySelectorAll('#living .member')].map((m) =>
            [m.querySelector('b').firstChild.textContent, m.querySelector('.bytes').textContent])""")

    def rows(self, table):
        return self.eval(f"[...document.querySelectorAll('#{table} .row')].map((r) => r.innerText)")

    def variable(self, name):
        return self.eval(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")

    def choose_part(self, value):
        self.eval(
            f"(() => {{ const p = document.getElementById('part'); p.value = {value};"
            " p.dispatchEvent(new Event('change')); })()"
        )
        self.settle()

    def chosen_step(self):
        """The step that is chosen, by the list of steps."""
        row = self.eval("(document.querySelector('#steps .row[aria-selected=true]') || {}).innerText")
        return int(row.split()[0].replace(",", "")) if row else None

    def check_totals(self, want):
        plan, placed = want.report["plan"], want.report["placed"]
        cards = dict(
            arena=plan["arena_bytes"],
            copies=placed["copy_bytes"],
            held=plan["state_bytes"],
            outputs=plan["output_bytes"],
        )
        for card, n in cards.items():
            same(card, self.text(f"card-{card}").splitlines()[1], said(n))
        if plan["optimal"]:
            "proved smallest" in self.text("card-arena") or fail("the arena is not said to be proved smallest")
        same("title", self.eval("document.getElementById('program').textContent"), want.report["program"] or "program")

    def check_peak(self, want):
        if want.peak is None:
            return
        title = self.text("living-title")
        f"(step {want.peak:,})" in title or fail(f"the peak is step {want.peak}, the page says {title!r}")
        got = self.members()
        alive = want.alive(want.peak)[:300]
        same("bytes at the peak", [m[1] for m in got], [said(r["alive"]) for r in alive])
        for m, r in zip(got, alive):
            name = name_of(r)
            m[0] == name or (m[0].startswith(name) and not name.startswith("%")) or fail(
                f"{m[0]!r} at the peak, not {name!r}"
            )

    def point(self, row):
        """x, y, width and height of a buffer's block; None outside of the view."""
        where = [row["offset"], row["bytes"], row["first_step"], row["last_step"]]
        return self.eval(f"restrideReport.point({json.dumps(where)})")

    def check_hover(self, want, most=12):
        """Hovers over the largest blocks in the view, and some others."""
        rng, seen = random.Random(1), 0
        rows = sorted(want.rows, key=lambda r: -r["bytes"] * (r["last_step"] - r["first_step"] + 1))
        rows = rows[:most] + rng.sample(rows[most:], min(most, len(rows) - most)) if len(rows) > most else rows
        for r in rows:
            at = self.point(r)
            if not at or at["width"] < 3 or at["height"] < 3:
                continue
            self.move(at["x"], at["y"])
            tip = self.text("tip")
            tip or fail(f"nothing is said over {r}")
            got = self.eval("({...document.getElementById('tip').dataset})")
            want = [r[k] for k in ("offset", "bytes", "first_step", "last_step")]
            same("hovering", [int(got[k]) for k in ("offset", "bytes", "first", "last")], want)
            f"{said(r['bytes'])} at offset {r['offset']:,}" in tip or fail(f"{r} is {tip!r}")
            (f"from step {r['first_step']} (" in tip and f"to step {r['last_step']} (" in tip) or fail(
                f"{r} lives as {tip!r}"
            )
            if r["values"] and not r["values"][0].startswith("scratch"):
                named = tip.split("\n")[0]
                named.startswith(", ".join("%" + v for v in r["values"][:6])) or fail(f"{r} is called {named!r}")
            seen += 1
        self.move(2, 2)
        same("a tip away from the chart", self.eval("document.getElementById('tip').hidden"), True)
        return seen

    def check_click(self, want):
        for r in sorted(want.rows, key=lambda r: -r["bytes"]):
            at = self.point(r)
            if at and at["width"] >= 3 and at["height"] >= 3:
                self.click(at["x"], at["y"])
                said(r["bytes"]) in self.text("details-body") or fail(
                    f"the details of {r} are {self.text('details-body')!r}"
                )
                f"{r['offset']:,} to {r['offset'] + r['bytes']:,}" in self.text("details-body") or fail(
                    "no offset in the details"
                )
                return

    def check_keys(self, want):
        if not want.rows:
            return
        self.focus("chart")
        self.key("p")
        same("step after P", self.chosen_step(), want.peak)
        largest = want.alive(want.peak)[0]
        self.key("ArrowUp")
        self.key("ArrowDown")
        self.key("p")
        self.key("[")
        same("step after [", self.chosen_step(), largest["first_step"])
        self.key("]")
        same("step after ]", self.chosen_step(), largest["last_step"])
        self.key("Home")
        same("step after Home", self.chosen_step(), 0)
        for _ in range(3):
            self.key("ArrowRight")
        steps = self.eval("Number(document.querySelector('#count-steps').innerText.replace(',', ''))")
        same("step after three to the right", self.chosen_step(), min(3, steps - 1))
        self.key("Shift+ArrowRight")
        at = min(13, steps - 1)
        same("step after Shift and right", self.chosen_step(), at)
        f"step {at}" in self.text("announce") or fail(f"a screen reader hears {self.text('announce')!r}")
        got = self.members()
        same(f"bytes at step {at}", [m[1] for m in got], [said(r["alive"]) for r in want.alive(at)[:300]])
        self.key("p")
        whole = self.eval("restrideReport.view")
        self.key("+")
        zoomed = self.eval("restrideReport.view")
        if steps > 8:
            zoomed[1] - zoomed[0] < whole[1] - whole[0] or fail("+ does not zoom")
            zoomed[0] <= want.peak < zoomed[1] or fail("+ loses the chosen step")
        self.key("0")
        same("view after 0", self.eval("restrideReport.view"), [0, steps])
        # Up goes over all buffers of a step, from the lowest to the highest.
        order = sorted(want.alive(want.peak), key=lambda r: r["lowest"])[:6]
        self.key("p")
        for _ in range(len(want.alive(want.peak))):
            self.key("ArrowDown")
        for r in order:
            heard = self.text("announce")
            f"offset {r['offset']}, steps {r['first_step']} to" in heard or fail(f"{r} is not heard: {heard!r}")
            self.key("ArrowUp")
        # The list of steps.
        self.focus("steps")
        self.key("Home")
        same("the first step", self.chosen_step(), 0)
        self.key("ArrowDown")
        same("the second step", self.chosen_step(), min(1, steps - 1))
        self.key("End")
        same("the last step", self.chosen_step(), steps - 1)
        bottom = lambda selector: self.eval(f"document.querySelector('{selector}').getBoundingClientRect().bottom")
        bottom("#steps [aria-selected=true]") <= bottom("#steps") + 1 or fail("the last step is out of sight")

    def check_tabs(self, want):
        """Tab reaches all controls, from the first to the last, and what has the focus is seen."""
        order = [
            "search",
            "theme",
            *(["to-peak"] if want.peak is not None else []),
            "zoom-all",
            "chart",
            "living",
            "tab-steps",
            "steps",
        ]
        self.eval("window.scrollTo(0, 0); document.querySelector('.skip').focus()")
        seen = []
        for _ in range(400):
            self.key("Tab")
            at, outline = self.eval(
                "((e) => [e.id || e.name, getComputedStyle(e).outlineStyle])(document.activeElement)"
            )
            # A radio button's focus is seen on its label.
            outline != "none" or at == "theme" or fail(f"the focus on {at} is not seen")
            seen += [at] if at in order else []
            if at == order[-1]:
                break
        same("order of Tab", seen, order)
        # Arrow keys between the tables.
        self.focus("tab-steps")
        for table in ("copies", "declined", "numbers", "steps"):
            self.key("ArrowRight")
            same("focus", self.eval("document.activeElement.id"), f"tab-{table}")
            same(f"{table} hidden", self.eval(f"document.getElementById('panel-{table}').hidden"), False)

    def check_reasons(self, want):
        """The tables of copies and of what was not done: all of them, and each row leads to its step."""
        placed = want.report["placed"]
        same("copies", self.text("count-copies"), f"{placed['copies']:,} · {said(placed['copy_bytes'])}")
        same("not done", self.text("count-declined"), f"{placed['missed']:,} · {said(placed['missed_bytes'])}")
        self.eval("document.getElementById('tab-copies').click()")
        rows = self.rows("copies")
        len(rows) >= min(placed["copies"], 15) or fail(f"{len(rows)} rows of copies")
        self.focus("copies")
        for row in rows[:3]:
            all(row.split("\n")) or fail(f"a copy without bytes, name, reason or line: {row!r}")
            self.key("Enter")
            self.eval("document.getElementById('tab-steps').click()")
            step = self.eval("document.querySelector('#steps .row[aria-selected=true] .tag').className")
            step in ("tag copy", "tag move") or fail(f"the copy {row!r} leads to a {step!r}")
            self.eval("document.getElementById('tab-copies').click()")
            self.focus("copies")
            self.key("ArrowDown")
        self.eval("document.getElementById('tab-steps').click()")

    def check_parts(self):
        """Every piece and body can be looked into, and says what the choice of it said."""
        for value, words in self.eval(
            "[...document.querySelectorAll('#part option')].map((o) => [o.value, o.textContent])"
        ):
            self.choose_part(value)
            arena = words.rsplit("arena ", 1)[1]
            steps = self.eval("restrideReport.steps")
            same(f"steps of {words}", self.text("count-steps"), f"{steps:,}")
            members = self.members()
            bool(members) == (arena != "0 B") or fail(f"{words}: {members}")
            "body" not in words or "arena of its own" in self.text("part-note") or fail(
                f"{words} says {self.text('part-note')!r}"
            )
        self.choose_part("restrideReport.first")

    def check_search(self, want):
        steps = {}
        for line in want.placed:
            found = re.search(r"(?:^|= |free )\s*((?:\w+\.)+\w+)\(", line)
            if found and not line.lstrip().startswith(("graph", "buffer")):
                steps.setdefault(found.group(1), []).append(line)
        if not steps:
            return
        # An operator whose name is no part of another's.
        names = [n for n in steps if sum(n in other for other in steps) == 1 and n.startswith("aten.")]
        name = max(names, key=lambda n: len(steps[n]))
        self.focus("search")
        self.type(name)
        time.sleep(0.3)
        self.settle()
        count = self.text("found")
        count.startswith(f"{len(steps[name]):,} of ") or fail(f"{name}: {count!r}, and {len(steps[name])} steps")
        rows = self.rows("steps")
        (rows and all(name.removeprefix("aten.").removesuffix(".default") in r for r in rows)) or fail(
            f"{name} gives {rows[:3]}"
        )
        # In the chart, the blocks of these steps' results are left as they are, and all others are faint.
        made = {n for line in steps[name] for n in re.findall(r'%("(?:[^"\\]|\\.)*"|[\w.]+)', line.split(" = ")[0])}
        key = lambda r: [r["offset"], r["bytes"], r["first_step"], r["last_step"]]
        # Scratch is called after the step's first result.
        lit = [r for r in want.rows if made & {v.removeprefix(WORKING) for v in r["values"]}]
        same("blocks found", sorted(self.eval("restrideReport.found")), sorted(key(r) for r in lit))
        faint = [r for r in want.rows if r not in lit]
        ground = self.variable("panel")
        near, far = (self.distance(rows, ground) for rows in (faint, lit))
        not near or not far or max(near) < min(far) or fail(
            f"what is not found is no fainter than what is: {near}, {far}"
        )
        self.key("Enter")
        self.chosen_step() is not None or fail("Enter chooses no step")
        self.key("Escape")
        same("found after Escape", self.text("found"), "")
        self.type("no such thing anywhere")
        time.sleep(0.3)
        self.settle()
        self.text("found").startswith("0 of") or fail("search finds a name that does not exist")
        self.key("Escape")

    def distance(self, rows, ground):
        """The distances of some visible blocks' colours from the ground's."""
        at = [a for a in map(self.point, rows) if a and a["width"] >= 8 and a["height"] >= 8]
        # Away from a block's name and from the chosen step.
        points = [(a["x"] + a["width"] * 0.3, a["y"] - a["height"] * 0.3) for a in at[:20]]
        pixels = self.eval(f"""(() => {{
            const blocks = document.getElementById('blocks'), box = blocks.getBoundingClientRect();
            const copy = Object.assign(document.createElement('canvas'), {{ width: blocks.width, height: blocks.height }});
            const g = copy.getContext('2d', {{ willReadFrequently: true }});
            g.drawImage(blocks, 0, 0);
            return {json.dumps(points)}.map(([x, y]) => [...g.getImageData(x - box.left, y - box.top, 1, 1).data]);
        }})()""")
        ground = [int(ground[i : i + 2], 16) for i in (1, 3, 5)]
        return [sum(abs(p - g) * pixel[3] / 255 for p, g in zip(pixel, ground)) for pixel in pixels]

    def check_narrow(self):
        self.resize(400, 800)
        self.settle()
        wide = self.eval("document.scrollingElement.scrollWidth")
        wide <= 400 or fail(f"the page is {wide} wide in a window of 400")

    def check_colours(self):
        for name in ("light", "dark"):
            self.eval(f"document.querySelector('#theme input[value={name}]').click()")
            same("theme", self.eval("document.documentElement.dataset.theme"), name)
            get = self.variable
            pairs = (
                "ink panel, ink page, dim panel, dim page, ink chosen, accent panel, bound panel, on-soft computed-soft"
            )
            pairs += ", on-soft copied-soft, on-strong computed, on-strong copied"
            for a, b in map(str.split, pairs.split(", ")):
                contrast(get(a), get(b)) >= 4.5 or fail(
                    f"{name}: {a} on {b} has a contrast of {contrast(get(a), get(b)):.1f}"
                )
            for a in ("computed", "copied", "working"):
                contrast(get(a), get("panel")) >= 3 or fail(f"{name}: {a} is hardly seen")
                contrast(get(a), get(a + "-soft")) >= 2.5 or fail(f"{name}: {a} and {a}-soft are hardly told apart")
        self.eval("document.querySelector('#theme input[value=auto]').click()")

    def check_fluid(self):
        """Frames while the steps are scrolled, and while the chart is zoomed, panned and walked through."""
        times = self.eval("""(async () => {
            const frame = () => new Promise(requestAnimationFrame);
            const list = document.getElementById('steps'), chart = document.getElementById('chart');
            const key = (key) => chart.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
            const times = [];
            const timed = async (work) => {
                const start = performance.now();
                work();
                await frame();
                times.push(performance.now() - start);
            };
            await frame();
            for (let i = 0; i < 40; i++) await timed(() => { list.scrollTop += list.scrollHeight / 41; });
            for (let i = 0; i < 20; i++) await timed(() => key('ArrowRight'));
            for (let i = 0; i < 6; i++) await timed(() => key('+'));
            for (let i = 0; i < 6; i++) await timed(() => key('-'));
            return times;
        })()""")
        times.sort()
        median, slow = times[len(times) // 2] / 1e3, times[len(times) * 9 // 10] / 1e3
        slow < FRAME or fail(f"one frame of ten took {slow:.2f} s")
        rows = self.eval("document.querySelectorAll('#steps .row').length")
        rows < 100 or fail(f"{rows} rows of the steps are made")
        return median, slow


def contrast(a, b):
    """As WCAG counts it."""

    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    x, y = sorted((light(a), light(b)))
    return (y + 0.05) / (x + 0.05)


# ---------------------------------------------------------------------------------- one program


def check(page, restride, path, files, shots):
    """Check one program's page; its figures."""
    inputs = [] if path.suffix == ".pt2" else ["--random", "1"]
    for command in (
        ["compile", path, "--report", files["html"], "--json", files["json"]],
        ["plan", path, "--json", files["plan"]],
    ):
        outcome = restride(*command, *inputs)
        if not outcome and not inputs and "--random" in outcome.line:
            inputs = ["--random", "1"]
            outcome = restride(*command, *inputs)
        outcome or fail(f"restride {command[0]}: {outcome.line}")
    placed = restride("show", path, "--stage", "placed", *inputs)
    placed or fail(placed.line)
    p = page(files["html"])
    report, plan = (json.loads(files[k].read_text()) for k in ("json", "plan"))
    want = Expected(report, plan, placed.stdout.splitlines(), p.eval("restrideReport.piece"))
    out = dict(opened=round(p.opened, 3), bytes=files["html"].stat().st_size, steps=p.eval("restrideReport.steps"))
    p.check_totals(want)
    p.check_peak(want)
    p.screenshot(f"{shots}.light.png")
    out["hovered"] = p.check_hover(want)
    p.check_click(want)
    p.check_reasons(want)
    p.check_parts()
    p.check_keys(want)
    # Search looks into the piece that is shown; the text has all of them, and bodies.
    if p.eval("document.querySelectorAll('#part option').length") == 1:
        p.check_search(want)
    p.check_tabs(want)
    p.check_colours()
    median, slow = p.check_fluid()
    out |= dict(frame_ms=round(median * 1e3, 1), slow_frame_ms=round(slow * 1e3, 1))
    p.colours("dark")
    p.focus("chart")
    p.key("p")
    p.eval("document.activeElement.blur(); window.scrollTo(0, 0)")
    p.settle()
    same("theme of a dark system", p.eval("document.documentElement.dataset.theme"), "dark")
    p.screenshot(f"{shots}.dark.png")
    p.check_narrow()
    p.screenshot(f"{shots}.narrow.png")
    foreign = "document.querySelectorAll('img, svg, iframe').length"
    markup = p.eval(f"[{foreign}, document.scripts.length, window.hostile === undefined]")
    same("markup that is not the page's", markup, [0, 2, True])
    p.errors and fail("; ".join(p.errors))
    return out


def main():
    p = parser(__doc__, "--binary", "--timeout", "--json", timeout=120.0)
    p.add_argument("programs", nargs="*", type=Path, metavar="FILE")
    p.add_argument("--generated", type=int, action="append", default=[], metavar="N", help="a program of N steps")
    p.add_argument("--screenshots", type=Path, default=Path(), metavar="DIR")
    p.add_argument("--browser", metavar="F", help="a Chromium; scripts/chromium.sh finds one")
    o = p.parse_args()
    restride = Restride(o.binary, o.timeout)
    find = lambda: subprocess.run(
        [ROOT / "scripts/chromium.sh"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    o.screenshots.mkdir(parents=True, exist_ok=True)
    rows = []
    with scratch() as tmp, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=o.browser or find(), args=["--no-sandbox", "--disable-gpu"]
        )
        todo = [(path.stem, path) for path in o.programs]
        made = {"hostile": hostile(), "nothing": NOTHING} | {f"generated_{n}": generated(n) for n in o.generated}
        for name, text in made.items():
            (tmp / f"{name}.fx").write_text(text)
            todo.append((name, tmp / f"{name}.fx"))
        for name, path in todo:
            files = {k: tmp / f"{name}.{end}" for k, end in dict(html="html", json="json", plan="plan.json").items()}
            tab = chromium.new_page()
            try:
                figures = check(lambda file: Page(tab, file), restride, path, files, o.screenshots / name)
                row = dict(name=name, status="ok", detail="") | figures
            except (AssertionError, Error) as e:
                row = dict(name=name, status="FAILED", detail=" ".join(str(e).split())[:1000])
                tab.screenshot(path=o.screenshots / f"{name}.failed.png")
            tab.close()
            rows.append(row)
        chromium.close()
    shown = ("steps", "bytes", "opened", "hovered", "frame_ms", "slow_frame_ms")
    table = [(r["name"], *(r.get(k, "-") for k in shown), r["status"], r["detail"]) for r in rows]
    print_table(("program", *shown, "", ""), table)
    failed = sum(r["status"] != "ok" for r in rows)
    hovered = sum(r.get("hovered", 0) for r in rows)
    if not failed and hovered < len(rows):
        failed += 1
        print(f"only {hovered} blocks were hovered over")
    return finish(len(rows) - failed, failed, o.json, ran=len(rows), rows=rows)


if __name__ == "__main__":
    sys.exit(main())
