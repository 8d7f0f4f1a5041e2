#!/usr/bin/env python3
"""Hold the values that the filetests expect to eager PyTorch.

PyTorch's own operators run every filetest with a `run` section (by default those of functionalize, placement, reinplace and
semantics), call by call: on the inputs of the filetest harness (counting 0, 1, 2, ... in their storages), with the sharing of the
file's `share:` lines and its `caller:` writes. Eager PyTorch must leave what the file expects: element types, sizes, strides,
offsets, elements, and sharing. Where a `run` section expects an error, PyTorch must raise. A section with a refusal is not
compared, and neither is a file with a reason (`torch: ...`); --all lists them. Exit status 1 when a file differs.
"""

import collections
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT
from lib.driver import parser

import torch
import torchvision  # noqa: F401 - registers its operators

torch.set_grad_enabled(False)

FILETESTS = ROOT / "crates/restride-testing/filetests"
SHORT = "bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128"
LONG = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
DTYPES = dict(zip(SHORT.split(), LONG.split(), strict=True))
STATEMENTS = ("graph", "symbol", "range", "input", "output", "weight", "guard", "note", "pytree", "stage", "program")
FORMATS = ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
TOKEN = re.compile(
    r'\s*(?:(?P<value>%(?:"[^"]*"|[\w.]+))|(?P<graph>@(?:"[^"]*"|[\w.]+))|(?P<string>"[^"]*")'
    r"|(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)|(?P<word>[A-Za-z_][\w.]*)|(?P<arrow>->)|(?P<mark>![^\n]*)|(?P<other>.))",
    re.S,
)


class Unreadable(Exception):
    pass


class Different(Exception):
    pass


class NotRun(Exception):
    pass


# ---------------------------------------------------------------------------------- reading


class Reader:
    """A recursive descent over the part of the text format that filetests use."""

    def __init__(self, text):
        text = "\n".join(line.split("//")[0] for line in text.splitlines())
        self.tokens = [(m.lastgroup, m.group(m.lastgroup)) for m in TOKEN.finditer(text) if m.group(0).strip()]
        self.at = 0

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ("end", "")

    def next(self):
        token = self.peek()
        self.at += 1
        return token

    def take(self, text):
        if self.peek()[1] == text and self.peek()[0] != "string":
            self.at += 1
            return True
        return False

    def need(self, text):
        if not self.take(text):
            raise Unreadable(f"expected {text!r}, found {self.peek()[1]!r}")

    def name(self, kind):
        found, text = self.next()
        if found != kind:
            raise Unreadable(f"expected a {kind}, found {text!r}")
        return text[1:].strip('"')

    def expr(self):
        """An expression over symbols, as Python text."""
        parts = []
        depth = 0
        while True:
            kind, text = self.peek()
            if depth == 0 and (text in (",", "]", ")", ";") or kind in ("end", "mark")):
                break
            if depth == 0 and parts and (kind in ("value", "graph", "string") or text in STATEMENTS):
                break
            depth += (text == "(") - (text == ")")
            parts.append(text)
            self.at += 1
        return " ".join(parts)

    def atom(self):
        """A number, a symbol, a parenthesised expression or a function of such, as Python text."""
        parts, depth = [self.next()[1]], 1
        if parts[0] != "(":
            if not self.take("("):
                return parts[0]
            parts.append("(")
        while depth:
            kind, text = self.next()
            if kind == "end":
                raise Unreadable("')' is expected")
            depth += (text == "(") - (text == ")")
            parts.append(text)
        return " ".join(parts)

    def numbers(self):
        self.need("[")
        out = []
        while not self.take("]"):
            out.append(self.expr())
            self.take(",")
        return out

    def type(self):
        """(kind, sizes, strides, offset), all as texts; strides None where row-major."""
        _, word = self.next()
        if word == "Sym":
            self.need("(")
            value = self.expr()
            self.need(")")
            return ("Sym", value, None, "0")
        if word not in DTYPES:
            return (word, None, None, "0")
        sizes = self.numbers()
        strides = self.numbers() if self.peek()[1] == "[" else None
        offset = "0"
        if self.take("+"):
            offset = self.atom()
            while self.take("*"):
                offset += " * " + self.atom()
        return (word, sizes, strides, offset)

    def argument(self):
        kind, text = self.peek()
        if kind == "value":
            return ("value", self.name("value"))
        if kind == "graph":
            return ("graph", self.name("graph"))
        if kind == "string":
            self.at += 1
            return ("plain", text[1:-1])
        if text == "[":
            self.at += 1
            items = []
            while not self.take("]"):
                items.append(self.argument())
                self.take(",")
            return ("list", items)
        if kind == "word" and text in ("None", "True", "False"):
            self.at += 1
            return ("plain", {"None": None, "True": True, "False": False}[text])
        if kind == "word" and (text in DTYPES or text in FORMATS or text in ("strided", "cpu") or "torch." in text):
            self.at += 1
            return ("word", text.removeprefix("torch."))
        if text == "(" and re.fullmatch(r"[\d.e]+", self.peek(1)[1]) and self.peek(4)[1] == "j":
            self.at += 1
            real, sign, imag = float(self.next()[1]), self.next()[1], float(self.next()[1])
            self.need("j")
            self.need(")")
            return ("plain", complex(real, -imag if sign == "-" else imag))
        return ("expr", self.expr())

    def graph(self):
        name = self.name("graph") if self.peek()[0] == "graph" else None
        inputs, nodes = [], []
        self.need("(")
        while not self.take(")"):
            value = self.name("value")
            self.need(":")
            inputs.append((value, self.type()))
            self.take(",")
        self.need("{")
        while not self.take("return"):
            results = []
            if self.peek()[0] == "value":
                while not self.take("="):
                    value = self.name("value")
                    self.need(":")
                    results.append((value, self.type()))
                    self.take(",")
            op, args, named = self.next()[1].strip('"'), [], {}
            self.need("(")
            while not self.take(")"):
                if self.peek()[0] == "word" and self.peek(1)[1] == "=":
                    key = self.next()[1]
                    self.need("=")
                    named[key] = self.argument()
                else:
                    args.append(self.argument())
                self.take(",")
            while self.peek()[0] == "mark":
                self.at += 1
            nodes.append((results, op, args, named))
        outputs = []
        while not self.take("}"):
            outputs.append(self.argument())
            self.take(",")
        return name, (inputs, nodes, outputs)

    def program(self):
        graphs, weights, kinds = {}, {}, {}
        while self.peek()[0] != "end":
            _, word = self.next()
            if word == "graph":
                name, graph = self.graph()
                graphs[name] = graph
            elif word == "weight":
                name = self.next()[1].strip('"')
                self.need(":")
                type = self.type()
                self.need("storage")
                weights[name] = (type, int(self.next()[1]))
                while self.peek()[1] in ("parameter", "requires_grad"):
                    self.at += 1
            elif word == "input":
                value = self.name("value")
                self.need(":")
                kind = self.next()[1]
                name = self.next()[1].strip('"')
                self.take("non_persistent")
                fixed = self.argument() if self.take("=") else None
                kinds[value] = (kind, name, fixed)
            elif word in STATEMENTS:
                # A statement for restride alone, up to the next one.
                while self.peek()[0] != "end" and self.peek()[1] not in STATEMENTS:
                    self.at += 1
            else:
                raise Unreadable(f"{word!r} starts no statement")
        return graphs, weights, kinds


def directives(source, key):
    lines = [line[3:] for line in source.splitlines() if line.startswith("// ")]
    return [line[len(key) + 1 :].strip() for line in lines if line.startswith(key + ":")]


# ---------------------------------------------------------------------------------- running


class Run:
    def __init__(self, source):
        self.source = source
        self.graphs, self.weights, self.kinds = Reader(source).program()
        self.symbols = {}
        for line in directives(source, "sizes"):
            for pair in line.split():
                name, value = pair.split("=")
                self.symbols[name] = int(value)

    def number(self, text):
        functions = {
            "FloorDiv": lambda a, b: a // b,
            "Min": min,
            "Max": max,
            "Mod": lambda a, b: a % b,
            "inf": float("inf"),
        }
        return eval(text, {"__builtins__": {}, **functions}, self.symbols)

    def layout(self, type):
        sizes = [self.number(s) for s in type[1]]
        strides = type[2] and [self.number(s) for s in type[2]]
        if strides is None:
            strides, n = [], 1
            for size in reversed(sizes):
                strides.insert(0, n)
                n *= max(size, 1)
        return sizes, strides, self.number(type[3])

    def dtype(self, type):
        return getattr(torch, DTYPES[type[0]])

    def cells(self, type):
        sizes, strides, offset = self.layout(type)
        return 0 if 0 in sizes else offset + 1 + sum((n - 1) * s for n, s in zip(sizes, strides))

    def count(self, dtype, bytes):
        return torch.arange(bytes // dtype.itemsize, dtype=torch.int64).to(dtype)

    def tensor(self, storage, type):
        sizes, strides, offset = self.layout(type)
        return torch.empty(0, dtype=self.dtype(type)).set_(storage.untyped_storage(), offset, sizes, strides)

    def inputs(self):
        """The main graph's inputs by name, the user's in order, and the state by name."""
        graph = self.graphs[None]
        types = dict(graph[0])
        groups = [[n.removeprefix("%") for n in line.split()] for line in directives(self.source, "share")]
        stored, values, user, state = {}, {}, [], {}
        needed = {}
        for type, storage in self.weights.values():
            bytes = self.cells(type) * self.dtype(type).itemsize
            dtype, n = needed.get(storage, (self.dtype(type), 0))
            needed[storage] = (dtype, max(n, bytes))
        memory = {s: self.count(dtype, n) for s, (dtype, n) in needed.items()}
        for name, (type, storage) in self.weights.items():
            state[name] = self.tensor(memory[storage], type)
        for name, type in graph[0]:
            kind, of, fixed = self.kinds.get(name, ("user", name, None))
            if kind in ("parameter", "buffer", "constant"):
                values[name] = state[of]
                continue
            if kind == "fixed":
                values[name] = self.argument(fixed, {})
                user.append(values[name])
                continue
            if type[0] == "Sym":
                values[name] = self.number(type[1])
            elif type[0] == "None":
                values[name] = None
            else:
                group = next((i for i, g in enumerate(groups) if name in g), None)
                key = name if group is None else group
                if key not in stored:
                    members = [name] if group is None else groups[group]
                    bytes = max(self.cells(types[m]) * self.dtype(types[m]).itemsize for m in members)
                    stored[key] = self.count(self.dtype(type), bytes)
                values[name] = self.tensor(stored[key], type)
            user.append(values[name])
        return values, user, state

    def argument(self, arg, env):
        kind, what = arg
        if kind == "value":
            return env[what]
        if kind == "list":
            return [self.argument(a, env) for a in what]
        if kind == "expr":
            return self.number(what)
        if kind == "word":
            return getattr(torch, DTYPES.get(what, what)) if what != "cpu" else torch.device("cpu")
        return what

    def check(self, name, type, value):
        if type is None:
            return
        if type[0] == "Sym":
            # A body learns its number in each iteration.
            learnt = re.fullmatch(r"u\d+", type[1]) is not None
            if learnt or (re.fullmatch(r"[A-Za-z_]\w*", type[1]) and type[1] not in self.symbols):
                self.symbols[type[1]] = int(value)
            return
        if type[0] not in DTYPES:
            return
        # A size that data decide.
        for text, size in zip(type[1], value.shape):
            if re.fullmatch(r"u\d+", str(text)):
                self.symbols.setdefault(text, size)
        sizes, strides, offset = self.layout(type)
        have = (value.dtype, list(value.shape), value.storage_offset())
        if have != (self.dtype(type), sizes, offset) or (
            0 not in sizes and any(n > 1 and a != b for n, a, b in zip(sizes, value.stride(), strides))
        ):
            raise Different(f"%{name} is declared {type}, PyTorch gives {show_type(value)}")

    def call(self, name, inputs):
        """Runs a graph; higher-order operators as what they mean in eager PyTorch."""
        inputs_of, nodes, outputs = self.graphs[name]
        env = {n: v for (n, _), v in zip(inputs_of, inputs)}
        for results, op, args, named in nodes:
            given = [("graph", a[1]) if a[0] == "graph" else self.argument(a, env) for a in args]
            if op.startswith("higher_order."):
                made = self.higher_order(op, given)
            else:
                namespace, function, overload = op.split(".")
                call = getattr(getattr(getattr(torch.ops, namespace), function), overload)
                try:
                    made = call(*given, **{k: self.argument(a, env) for k, a in named.items()})
                except (RuntimeError, IndexError) as e:
                    e.restride_at = op
                    raise
            made = list(made) if isinstance(made, (list, tuple)) else [made]
            if len(results) > len(made):
                raise Different(f"{op} gives {len(made)} results, {len(results)} are declared")
            for (value, type), one in zip(results, made):
                self.check(value, type, one)
                env[value] = one
        return [self.argument(a, env) for a in outputs]

    def higher_order(self, op, args):
        if op == "higher_order.cond":
            taken = args[1] if bool(args[0]) else args[2]
            return self.call(taken[1], args[3])
        if op == "higher_order.while_loop":
            more, step, carried, extra = args
            while bool(self.call(more[1], [*carried, *extra])[0]):
                carried = self.call(step[1], [*carried, *extra])
            return [c.clone() if torch.is_tensor(c) else c for c in carried]
        raise NotRun(f"{op} is not run here")

    def left(self):
        """(name, value) of everything that the caller sees afterwards."""
        values, user, state = self.inputs()
        outputs = self.call(None, [values[n] for n, _ in self.graphs[None][0]])
        for line in directives(self.source, "caller"):
            at, number = line.split("=")
            kind, position = at.split()
            {"input": user, "output": outputs}[kind][int(position)].fill_(float(number))
        named = [(f"input {i}", v) for i, v in enumerate(user)]
        named += sorted(state.items())
        return named + [(f"output {i}", v) for i, v in enumerate(outputs)]


def show_type(t):
    names = {v: k for k, v in DTYPES.items()}
    dtype = names[str(t.dtype).removeprefix("torch.")]
    return f"{dtype}{list(t.shape)}{list(t.stride())}+{t.storage_offset()}"


def elements(t):
    t = t.resolve_conj().resolve_neg()
    return t.reshape(-1).tolist()


def number(text):
    if text in ("true", "false"):
        return text == "true"
    m = re.fullmatch(r"\((\S+?)([-+][\d.einfNa-]+)j\)", text)
    return complex(float(m[1]), float(m[2])) if m else float(text)


def close(a, b):
    return a == b or (a != a and b != b) or abs(a - b) <= 1e-5 * abs(b)


def compare(expected, left):
    """The first difference between the lines of a `run` section and the values that PyTorch left."""
    lines = [line for line in expected if line.strip()]
    if len(lines) != len(left):
        return f"{len(lines)} lines for {len(left)} values"
    storages = []
    for line, (name, value) in zip(lines, left):
        said, _, rest = line.partition(": ")
        if said != name:
            return f"{said} stands for {name}"
        if not torch.is_tensor(value):
            have = "None" if value is None else f"Scalar({type(value).__name__.capitalize()}({str(value).lower()}))"
            if rest != have:
                return f"{name} is {have}, {rest} is expected"
            continue
        m = re.fullmatch(r"(\w+)(\[.*?\])(\[.*?\])\+(\d+) = \[(.*?)\](?:, on the storage of (.*))?", rest)
        if not m:
            return f"{line!r} cannot be read"
        # restride's outputs have no lazy bits: PyTorch's lazy negation and conjugation are applied first.
        value = value.resolve_conj().resolve_neg()
        sizes = list(value.shape)
        want = f"{m[1]}{m[2]}"
        if not show_type(value).startswith(want) or int(m[4]) != value.storage_offset():
            return f"{name} is {show_type(value)}, {rest.split(' = ')[0]} is expected"
        strides = [int(s) for s in m[3][1:-1].split(",") if s.strip()]
        if 0 not in sizes and any(n > 1 and a != b for n, a, b in zip(sizes, strides, value.stride())):
            return f"{name} has strides {list(value.stride())}, {strides} are expected"
        have, told = elements(value), [number(x) for x in m[5].split()]
        if len(have) != len(told) or not all(close(b, a) for a, b in zip(have, told)):
            return f"{name} holds {have}, {told} is expected"
        id = value.untyped_storage()._cdata
        first = next((n for i, n in storages if i == id), None)
        if first != m[6]:
            return f"{name} shares the storage of {first}; expected: {m[6]}"
        storages.append((id, name))
    return None


def check(path):
    """(verdict, detail) of one file; verdicts are same, different, raises, skipped."""
    text = path.read_text(encoding="utf-8")
    source, *sections = text.split("\n// == ")
    section = next((s for s in sections if s.split("\n")[0] == "run"), None)
    if section is None:
        return "skipped", "no run section"
    for why in directives(source, "torch"):
        return "skipped", why
    expected = [line.removeprefix("//").removeprefix(" ") for line in section.rstrip().split("\n")[1:]]
    refused = re.match(r"\w+ refuses: ", expected[0]) if expected else None
    error = expected[0].startswith("error: ") if expected else False
    try:
        left = Run(source).left()
    except NotRun as e:
        return "skipped", str(e)
    except (Different, Unreadable) as e:
        return "different", str(e)
    except (RuntimeError, IndexError) as e:
        words = str(e).splitlines()[0]
        return ("raises", words) if error else ("different", f"{getattr(e, 'restride_at', '')} raises {words}")
    if error:
        return "different", f"PyTorch runs what is expected to be an {expected[0]}"
    if refused:
        return "skipped", expected[0]
    why = compare(expected, left)
    return ("different", why) if why else ("same", "")


def main():
    p = parser(__doc__)
    default = [FILETESTS / d for d in ("functionalize", "placement", "reinplace", "semantics")]
    p.add_argument("paths", nargs="*", type=Path, default=default)
    p.add_argument("--all", action="store_true", help="also list what is the same or not compared")
    o = p.parse_args()
    counts = collections.Counter()
    for path in (f for p in o.paths for f in (sorted(p.glob("*.fx")) if p.is_dir() else [p])):
        verdict, detail = check(path)
        counts[verdict] += 1
        if verdict == "different" or o.all:
            print(f"{os.path.relpath(path, ROOT)}: {verdict}{': ' + detail if detail else ''}")
    print(", ".join(f"{counts[v]} {v}" for v in ("same", "raises", "skipped", "different")))
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
