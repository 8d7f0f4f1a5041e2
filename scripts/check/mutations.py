"""Damage to files, at each level of their formats: bytes, zip, JSON, pickle, and the text of programs.

Every function takes a `random.Random` and the file's bytes and returns other bytes. Standard library only.
"""

import contextlib
import io
import itertools
import json
import pickletools
import re
import struct
import zipfile
import zlib

# Numbers at which sizes, offsets and counts go wrong.
NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    7,
    64,
    127,
    128,
    255,
    256,
    1000,
    4096,
    32767,
    65535,
    65536,
    10**6,
    2**24,
    2**31 - 1,
    2**31,
    -(2**31),
]
NUMBERS += [2**32 - 1, 2**32, 2**40, 2**53 + 1, 2**62, 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 10**30]
DTYPES = "bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c32 c64 c128 f8_e4m3fn f8_e5m2".split()


def number(rng, old=None):
    """A number that may be too large, too small, or just beside the old one."""
    if isinstance(old, int) and rng.random() < 0.5:
        return rng.choice([old + 1, old - 1, -old, old * 2, old // 2, old + 8, old * 1000, old + rng.randrange(16)])
    return rng.choice(NUMBERS[:12]) if rng.random() < 0.5 else rng.choice(NUMBERS)


# ---------------------------------------------------------------------------------- bytes


def in_bytes(rng, data):
    """One to eight changes of bytes."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4, 8])):
        at = rng.randrange(len(out) + 1)
        length = min(rng.choice([1, 1, 2, 4, 8, 16, 64, 512]), max(len(out) - at, 0))
        kind = rng.randrange(8)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(out):
            out[at] = rng.randrange(256)
        elif kind == 2:
            del out[at : at + length]
        elif kind == 3:
            out[at:at] = rng.randbytes(length)
        elif kind == 4:
            out[at:at] = out[at : at + length]
        elif kind == 5:
            width = rng.choice([1, 2, 4, 8])
            value = number(rng) % 256**width
            out[at : at + width] = value.to_bytes(width, rng.choice(["little", "big"]))
        elif kind == 6:
            to = rng.randrange(len(out) + 1)
            out[to : to + length] = out[at : at + length]
        elif rng.random() < 0.3:
            del out[at:]
    return bytes(out)


# ---------------------------------------------------------------------------------- zip


def zip_entries(data):
    """Names and contents of an archive, in its order."""
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        return [(info.filename, z.read(info)) for info in z.infolist()]


def deflated(content):
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


def zip_write(entries, damage=lambda where, fields: fields, deflate=()):
    """An archive of these entries. `damage` may change the fields of each record before it is written."""
    out, central = bytearray(), []
    for name, content in entries:
        raw, method = (deflated(content), 8) if name in deflate else (content, 0)
        # PyTorch maps contents, so they begin at multiples of 64.
        pad = -(len(out) + 30 + len(name.encode()) + 4) % 64
        extra = struct.pack("<HH", 0x4246, pad) + b"Z" * pad
        fields = dict(sig=0x04034B50, version=20, flags=0, method=method, time=0, date=0, crc=zlib.crc32(content))
        fields |= dict(packed=len(raw), size=len(content), name=name.encode(), extra=extra)
        at = len(out)
        f = damage("local", dict(fields))
        head = struct.pack("<IHHHHHIII", *(f[k] for k in list(fields)[:9]))
        out += head + struct.pack("<HH", len(f["name"]), len(f["extra"])) + f["name"] + f["extra"] + raw
        central.append(fields | dict(sig=0x02014B50, extra=b"", at=at))
    start = len(out)
    for fields in central:
        f = damage("central", dict(fields))
        shared = [f[k] for k in ("version", "flags", "method", "time", "date", "crc", "packed", "size")]
        out += struct.pack("<IHHHHHHIII", f["sig"], 20, *shared)
        out += struct.pack("<HHHHHII", len(f["name"]), len(f["extra"]), 0, 0, 0, 0, f["at"]) + f["name"] + f["extra"]
    count = len(central) & 0xFFFF
    end = dict(sig=0x06054B50, disk=0, start_disk=0, here=count, total=count, bytes=len(out) - start, at=start)
    end = damage("end", end)
    if end.pop("zip64", False):
        at = len(out)
        out += struct.pack(
            "<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, end["here"], end["total"], end["bytes"], end["at"]
        )
        out += struct.pack("<IIQI", 0x07064B50, 0, at, 1)
        end |= dict(here=0xFFFF, total=0xFFFF, bytes=0xFFFFFFFF, at=0xFFFFFFFF)
    out += struct.pack("<IHHHHIIH", *end.values(), 0)
    return bytes(out)


# Bytes of each field.
WIDTHS = dict(sig=4, version=2, flags=2, method=2, time=2, date=2, crc=4, packed=4, size=4)
WIDTHS |= dict(at=4, disk=2, start_disk=2, here=2, total=2, bytes=4)


def in_zip(rng, data):
    """Entries renamed, repeated, left out, exchanged or emptied; fields of records that are wrong."""
    entries = zip_entries(data)
    deflate = {name for name, _ in entries if rng.random() < 0.2}
    for _ in range(rng.choice([0, 1, 1, 2])):
        i, j = rng.randrange(len(entries)), rng.randrange(len(entries))
        kind = rng.randrange(8)
        if kind == 0:
            del entries[i]
        elif kind == 1:
            entries.insert(j, entries[i])
        elif kind == 2:
            entries[i], entries[j] = (entries[i][0], entries[j][1]), (entries[j][0], entries[i][1])
        elif kind == 3:
            entries[i] = (entries[i][0], rng.choice([b"", entries[i][1][: rng.randrange(len(entries[i][1]) + 1)]]))
        elif kind == 4:
            name = entries[i][0]
            others = [entries[j][0], "../" + name, "/etc/passwd", "a\0b", name + "/", name.split("/", 1)[-1], "é" * 300]
            entries[i] = (rng.choice(others), entries[i][1])
        elif kind == 5:
            entries[i] = (entries[i][0], in_bytes(rng, entries[i][1]))
        elif kind == 6:
            # A bomb: little in the file, much when inflated.
            entries[i] = (entries[i][0], entries[i][1] + b" " * rng.choice([10**5, 10**6, 10**7]))
            deflate.add(entries[i][0])
        else:
            rng.shuffle(entries)
        if not entries:
            return b"PK\5\6" + b"\0" * 18
    chance = rng.choice([0, 0.02, 0.02, 0.2])

    def damage(where, fields):
        if where == "end" and rng.random() < 0.2:
            fields["zip64"] = True
        while rng.random() < chance:
            field = rng.choice([k for k in fields if k != "zip64"])
            if field in ("name", "extra"):
                fields[field] = (
                    in_bytes(rng, fields[field])[:60000] if fields[field] else rng.randbytes(rng.randrange(40))
                )
            else:
                fields[field] = number(rng, fields[field]) % 256 ** WIDTHS[field]
        return fields

    return zip_write(entries, damage, deflate)


def in_entry(rng, data, chosen, change):
    """The archive with one of the entries changed whose names `chosen` takes; `None` if it has none."""
    entries = zip_entries(data)
    fitting = [i for i, (name, content) in enumerate(entries) if content and chosen(name)]
    if not fitting:
        return None
    i = rng.choice(fitting)
    entries[i] = (entries[i][0], change(rng, entries[i][1]))
    return zip_write(entries)


# ---------------------------------------------------------------------------------- JSON


def json_places(value, into, holder=None, key=None):
    """All (holder, key) of a document, each once."""
    stack = [(value, holder, key)]
    while stack:
        value, holder, key = stack.pop()
        if holder is not None:
            into.append((holder, key))
        if isinstance(value, dict):
            stack += [(v, value, k) for k, v in value.items()]
        elif isinstance(value, list):
            stack += [(v, value, i) for i, v in enumerate(value)]


def everywhere(value, old, new):
    """The document with each `old` replaced."""
    if type(value) is type(old) and value == old:
        return new
    if isinstance(value, dict):
        return {k: everywhere(v, old, new) for k, v in value.items()}
    if isinstance(value, list):
        return [everywhere(v, old, new) for v in value]
    return value


def nested(rng, value):
    for _ in range(rng.choice([3, 100, 127, 200, 5000])):
        value = [value] if rng.random() < 0.9 else {"as_ints": value}
    return value


class Json:
    """Changes of JSON, with strings of other files of its kind to put in."""

    def __init__(self, strings):
        self.strings = sorted(strings)

    def text(self, rng, old):
        kind = rng.randrange(6)
        if kind == 0 or not old:
            return rng.choice(self.strings)
        if kind == 1 and "as_" not in old:
            return re.sub(r"-?\d+", lambda m: str(number(rng, int(m[0]))) if rng.random() < 0.5 else m[0], old)
        if kind == 2:
            return old + rng.choice(["", "_", "0", ")", "(", "é", "\0", "'", " + s0", "*" * 20])
        if kind == 3:
            return "(" * rng.choice([1, 50, 3000]) + old
        return rng.choice(self.strings)

    def changed(self, rng, data):
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            return in_bytes(rng, data)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            places = []
            json_places(document, places)
            if not places:
                break
            # Numbers and strings carry most of a file's meaning.
            holder, key = rng.choice(places)
            for _ in range(3):
                if isinstance(holder[key], (dict, list)) and rng.random() < 0.7:
                    holder, key = rng.choice(places)
            old = holder[key]
            # Python goes as deep as its stack.
            try:
                document = self.one(rng, document, places, holder, key, old)
            except RecursionError:
                break
        try:
            return json.dumps(document).encode()
        except RecursionError:
            return b"[" * 100000

    def one(self, rng, document, places, holder, key, old):
        kind = rng.randrange(12)
        if kind == 0:
            if isinstance(holder, dict):
                del holder[key]
            else:
                holder.pop(key)
        elif kind == 1:
            if isinstance(holder, list):
                holder.insert(key, old)
            else:
                holder[rng.choice(self.strings)] = old
        elif kind == 2:
            other, k = rng.choice(places)
            with contextlib.suppress(RecursionError, KeyError, IndexError):
                holder[key] = json.loads(json.dumps(other[k]))
        elif kind == 3:
            holder[key] = rng.choice([None, True, False, 0, -1, 1.5, 1e308, "", "x", [], {}, [[]], "NaN", 10**400])
        elif kind == 4 and rng.random() < 0.2:
            holder[key] = nested(rng, old)
        elif kind == 5 and isinstance(old, list) and len(old) > 1:
            rng.shuffle(old)
        elif kind == 6 and isinstance(old, list) and old and rng.random() < 0.3:
            holder[key] = (old * 5000)[: rng.choice([10, 1000, 5000])]
        elif isinstance(old, bool):
            holder[key] = not old
        elif isinstance(old, int):
            new = number(rng, old)
            if kind in (7, 8):
                return everywhere(document, old, new)
            holder[key] = new
        elif isinstance(old, float):
            holder[key] = rng.choice([0.0, -0.0, 1e-310, 1e308, -1e308, float("nan"), float("inf"), 0.5])
        elif isinstance(old, str):
            new = self.text(rng, old)
            if kind in (7, 8):
                return everywhere(document, old, new)
            holder[key] = new
        elif isinstance(holder, list) and holder:
            other = rng.randrange(len(holder))
            holder[key], holder[other] = holder[other], holder[key]
        return document


# ---------------------------------------------------------------------------------- pickle


def in_pickle(rng, data):
    """Instructions left out, repeated, exchanged, or with another argument."""
    try:
        at = [position for _, _, position in pickletools.genops(data)] + [len(data)]
    except Exception:
        return in_bytes(rng, data)
    ops = [bytearray(data[a:b]) for a, b in itertools.pairwise(at)]
    for _ in range(rng.choice([1, 1, 2, 4])):
        i, j = rng.randrange(len(ops)), rng.randrange(len(ops))
        kind = rng.randrange(8)
        if kind == 0 and len(ops) > 1:
            del ops[i]
        elif kind == 1:
            ops.insert(i, ops[j])
        elif kind == 2:
            ops[i], ops[j] = ops[j], ops[i]
        elif kind == 3:
            wide = number(rng) % 2**32
            long = b"\x8a\x08" + number(rng).to_bytes(16, "little", signed=True)[:8]
            plain = [bytes([op]) for op in b"N\x88]})(02QRbteusa\x85\x86\x87"]
            ops[i] = bytearray(
                rng.choice([b"J" + wide.to_bytes(4, "little"), b"K" + bytes([wide % 256]), long, *plain])
            )
        elif kind == 4 and len(ops[i]) > 1:
            ops[i][1:] = rng.randbytes(len(ops[i]) - 1)
        elif kind == 5 and len(ops[i]) > 1:
            ops[i][1 + rng.randrange(len(ops[i]) - 1)] ^= 1 << rng.randrange(8)
        elif kind == 6 and rng.random() < 0.3:
            ops[i:i] = [bytearray(rng.choice([b"(", b"]", b"2", b"}", b")"]))] * rng.choice([10, 1000, 100000])
        else:
            at = rng.randrange(len(ops))
            ops[at:at] = ops[i : i + rng.randrange(6)]
    return b"".join(ops)


def in_nested_archive(rng, data):
    """A `.pt` of an archive, with its pickle or one of its entries changed."""
    try:
        if rng.random() < 0.8:
            return in_entry(rng, data, lambda name: name.endswith(".pkl"), in_pickle) or data
        return in_zip(rng, data)
    except (zipfile.BadZipFile, ValueError):
        return in_bytes(rng, data)


# ---------------------------------------------------------------------------------- programs as text

TOKEN = re.compile(r"%\w+|[A-Za-z_][\w.]*|-?\d+(?:\.\d+)?(?:e-?\d+)?|\s+|.", re.S)


class Text:
    """Changes of `.fx` programs, with lines and names of other ones."""

    def __init__(self, texts):
        lines = {line for text in texts for line in text.splitlines() if " = " in line}
        self.lines = sorted(lines)
        self.ops = sorted(
            {m for text in texts for m in re.findall(r"\b(?:aten|prims|restride|higher_order)\.[\w.]+", text)}
        )
        words = 'None true false inf -inf nan [] [ ] ( ) { } -> return graph s0 %x " "\\'
        self.atoms = DTYPES + words.split() + ["s0 * s1", "s0 // 0"]

    def token(self, rng, token):
        if re.fullmatch(r"-?\d+", token):
            return str(number(rng, int(token)))
        if token in DTYPES:
            return rng.choice(DTYPES)
        if token.startswith(("aten.", "prims.", "restride.")):
            return rng.choice(self.ops)
        return rng.choice(self.atoms)

    def changed(self, rng, data):
        text = data.decode(errors="replace")
        # The command ignores the expected results.
        text = text.split("\n// == ")[0] + "\n"
        for _ in range(rng.choice([1, 1, 1, 2, 3, 5])):
            text = self.one(rng, text)
        return text.encode(errors="replace")

    def one(self, rng, text):
        kind = rng.randrange(14)
        if kind <= 3:
            lines = text.split("\n")
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            if kind == 0:
                del lines[i]
            elif kind == 1:
                lines.insert(i, lines[j])
            elif kind == 2:
                lines[i], lines[j] = lines[j], lines[i]
            else:
                lines.insert(i, rng.choice(self.lines))
            return "\n".join(lines)
        tokens = TOKEN.findall(text)
        full = [i for i, t in enumerate(tokens) if not t.isspace()]
        if not full:
            return text
        i, j = rng.choice(full), rng.choice(full)
        if kind in (4, 5):
            # Replaced everywhere, a number or name makes a program with other sizes.
            old, new = tokens[i], self.token(rng, tokens[i])
            tokens = [new if t == old else t for t in tokens]
        elif kind == 6:
            values = [k for k in full if tokens[k].startswith("%")] or full
            tokens[rng.choice(values)] = tokens[rng.choice(values)]
        elif kind == 7:
            del tokens[i]
        elif kind == 8:
            tokens.insert(i, tokens[j])
        elif kind == 9 and rng.random() < 0.2:
            tokens[i] = rng.choice(["(", "[", "-", "s0 + ", "s0 * ("]) * rng.choice([5, 130, 20000]) + tokens[i]
        elif kind == 10 and rng.random() < 0.3:
            return in_bytes(rng, text.encode()).decode(errors="replace")
        else:
            numbers = [k for k in full if re.fullmatch(r"-?\d+", tokens[k])] if rng.random() < 0.6 else None
            at = rng.choice(numbers or full)
            tokens[at] = self.token(rng, tokens[at])
        return "".join(tokens)


# ---------------------------------------------------------------------------------- tensors


def npy_parts(data):
    """Header and elements of a `.npy`."""
    if data[:6] != b"\x93NUMPY" or data[6] != 1:
        raise ValueError("not a .npy of version 1")
    length = struct.unpack_from("<H", data, 8)[0]
    return data[10 : 10 + length].decode("latin-1"), data[10 + length :]


def in_npy(rng, data):
    try:
        header, elements = npy_parts(data)
    except (ValueError, IndexError, struct.error):
        return in_bytes(rng, data)
    kind = rng.randrange(4)
    if kind == 0:
        header = re.sub(r"\d+", lambda m: str(number(rng, int(m[0]))), header, count=rng.randrange(1, 4))
    elif kind == 1:
        header = header.replace("False", rng.choice(["True", "None", "False" * 3]))
    elif kind == 2:
        header = in_bytes(rng, header.encode("latin-1")).decode("latin-1")
    else:
        header = header.replace("(", "(" + rng.choice(["0, ", "1, ", "(", "4611686018427387904, ", "1, " * 70, "-1, "]))
    raw = header.encode("latin-1")[:65000]
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(raw)) + raw + elements


def in_safetensors(rng, data, change):
    """The header changed by `change`, with its length."""
    length = struct.unpack_from("<Q", data)[0]
    header = change(rng, data[8 : 8 + length])
    if rng.random() < 0.1:
        return struct.pack("<Q", number(rng, length) % 2**64) + header + data[8 + length :]
    return struct.pack("<Q", len(header)) + header + data[8 + length :]


def safetensors_of(npz):
    """The `.safetensors` of a `.npz` whose element types it has."""
    names = {"<f2": "F16", "<f4": "F32", "<f8": "F64", "|i1": "I8", "<i2": "I16", "<i4": "I32", "<i8": "I64"}
    names |= {"|b1": "BOOL", "|u1": "U8"}
    header, body = {}, b""
    for name, content in zip_entries(npz):
        text, elements = npy_parts(content)
        fields = dict(eval(text, {"__builtins__": {}}))  # Numpy's own header, of a fixture.
        if fields["descr"] not in names or fields["fortran_order"]:
            return None
        entry = dict(dtype=names[fields["descr"]], shape=list(fields["shape"]))
        header[name.removesuffix(".npy")] = entry | dict(data_offsets=[len(body), len(body) + len(elements)])
        body += elements
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + body
