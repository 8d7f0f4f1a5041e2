"""The frame of every script: options, temporary folders, parallel work with a time limit, tables, JSON, the last line."""

import argparse
import concurrent.futures
import contextlib
import functools
import io
import json
import multiprocessing
import tempfile
import time
from pathlib import Path


def seeds(text):
    """The range that FROM..TO names."""
    first, last = text.split("..")
    return range(int(first), int(last))


OPTIONS = {
    "names": dict(nargs="*", metavar="NAME", help="only these cases"),
    "--binary": dict(metavar="F", help="the restride to run (default: $RESTRIDE, else this checkout's release build)"),
    "--timeout": dict(type=float, default=60.0, help="seconds for one command"),
    "--jobs": dict(type=int, default=1, help="how many to run at a time"),
    "--json": dict(metavar="F", help="write the results as JSON"),
    "--rounds": dict(type=int, default=3, help="how often each way is timed, in turn"),
    "--write-docs": dict(action="store_true", help="put the tables into the page of docs"),
    "--seeds": dict(type=seeds, metavar="FROM..TO", help="which programs to draw"),
    "--seconds": dict(type=float, help="start nothing after this many seconds"),
    "--show": dict(type=int, metavar="SEED", help="one program, printed with its differences"),
}


def parser(doc, *shared, **defaults):
    """A parser with the script's text as its help and the options of OPTIONS that it names, some with another default."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in shared:
        default = {k: v for k, v in [("default", defaults.get(name.strip("-")))] if v is not None}
        p.add_argument(name, **OPTIONS[name] | default)
    return p


def chosen(p, options, cases):
    """The cases that were asked for, all by default; an unknown name is a usage error."""
    unknown = [n for n in options.names if n not in cases]
    if unknown:
        p.error(f"no case is called {unknown[0]}")
    return {name: c for name, c in cases.items() if not options.names or name in options.names}


@contextlib.contextmanager
def scratch():
    """A temporary folder, as a Path."""
    with tempfile.TemporaryDirectory(prefix="restride-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def quiet():
    """Nothing is printed: torch.export tells on both streams what it cannot guard on."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def pooled(work, items, jobs, seconds=None):
    """`work(*item)` of each item in spawned processes, in order of completion; nothing starts after `seconds`."""
    begin, pending, items = time.monotonic(), set(), iter(items)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context) as pool:
        while True:
            while len(pending) < jobs + 1 and not (seconds and time.monotonic() - begin > seconds):
                item = next(items, None)
                if item is None:
                    break
                pending.add(pool.submit(work, *item))
            if not pending:
                return
            done, pending = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
            yield from (future.result() for future in done)


def forked(work, items, jobs):
    """(item, work(*item)) of each item in order, in `jobs` processes; here if there is one.

    The processes inherit the items: modules with closures cannot be sent.
    """
    if jobs <= 1:
        yield from ((item, work(*item)) for item in items)
        return
    items = list(items)
    global _calls
    _calls = [functools.partial(work, *item) for item in items]
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from zip(items, pool.imap(_call, range(len(items))), strict=True)


def _call(at):
    return _calls[at]()


def chunks(numbers, size):
    """(first, last) of each run of `size` numbers of a range."""
    return ((at, min(at + size, numbers.stop)) for at in range(numbers.start, numbers.stop, size))


def patterns_of(path):
    """The patterns of a file, one a line; `#` starts a comment."""
    return [p for p in (line.split("#")[0].strip() for line in Path(path).read_text().splitlines()) if p]


def replace_between(path, begin, end, text):
    """Write the text between two marks of a file."""
    path = Path(path)
    whole = path.read_text()
    if begin not in whole or end not in whole[whole.index(begin) :]:
        raise SystemExit(f"{path} has no marks {begin} and {end}")
    first = whole.index(begin) + len(begin)
    path.write_text(whole[:first] + "\n" + text + whole[whole.index(end, first) :])


def print_table(header, rows):
    """Columns wide enough for all but the last, which runs on."""
    cells = [[str(c) for c in row] for row in [header, *rows]]
    wide = [max(len(row[i]) for row in cells) for i in range(len(header) - 1)]
    for row in cells:
        print("  ".join([c.ljust(w) for c, w in zip(row, wide, strict=False)] + row[len(wide) :]).rstrip())


def markdown(header, rows):
    """The lines of a Markdown table, and an empty one."""
    line = lambda cells: f"| {' | '.join(map(str, cells))} |"
    return [line(header), "|---" * len(header) + "|", *map(line, rows), ""]


def write_json(path, data):
    """Write data to `--json F`; nothing without one."""
    if path:
        Path(path).resolve().parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(json.dumps(data, indent=1))


def first_of(problems):
    """The first problem, and the number of others."""
    return problems[0] + (f" (and {len(problems) - 1} more)" if len(problems) > 1 else "")


def finish(passed, failed, path=None, ran=None, **data):
    """The last line, and the results as JSON. The exit status: 1 when something failed, or nothing `ran` (passed, by default)."""
    print(f"{passed} passed, {failed} failed")
    write_json(path, dict(data, passed=passed, failed=failed))
    return 1 if failed or not (passed if ran is None else ran) else 0


def report_cases(rows, ways, path=None, neutral=("n/a",), **data):
    """A table of {way: (status, detail)} by name; every status but ok and the neutral ones fails. The exit status."""
    table = []
    for name, results in rows.items():
        detail = next((f"{way}: {d}" for way, (_, d) in results.items() if d), "")
        table.append((name, *(results[way][0] for way in ways), detail))
    print_table(("case", *ways, ""), table)
    statuses = [s for results in rows.values() for s, _ in results.values()]
    passed, failed = statuses.count("ok"), sum(s != "ok" and s not in neutral for s in statuses)
    rows = [dict(name=name, results=results) for name, results in rows.items()]
    return finish(passed, failed + len(data.get("missing", ())), path, rows=rows, **data)
