"""Comparing arrays: within the tolerance of all checks of models, and bit for bit."""

import numpy as np


def load(path):
    """The arrays of a .npz by name."""
    with np.load(path, allow_pickle=False) as z:
        return {name: z[name] for name in z.files}


def difference(got, want, half=False, slack=0.0):
    """None when `got` agrees with `want`, else what is different.

    Floats agree within rtol 1e-4 and an atol of 1e-5 plus 1e-5 of the largest magnitude of `want`; with `half`
    (the value went through f16 or bf16) the relative parts are 1e-2. `slack` is allowed on top. NaNs and
    infinities must be in the same places. Everything else is exact, as are shapes and the kind of dtype.
    """
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, not {list(want.shape)}"
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, not {want.dtype}"
    if want.dtype.kind not in "fc":
        bad = got != want
        if not bad.any():
            return None
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        return f"{int(bad.sum())} of {bad.size} differ, first {list(at)}: {got[at]}, not {want[at]}"
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    g, w = got.astype(wide), want.astype(wide)
    finite = np.isfinite(w)
    with np.errstate(invalid="ignore"):
        same = (g == w) | (np.isnan(g) & np.isnan(w))
        error = np.abs(g - w)
    relative = 1e-2 if half or want.dtype == np.float16 else 1e-4
    largest = float(np.abs(w[finite]).max()) if finite.any() else 0.0
    allowed = slack + 1e-5 + (1e-2 if relative == 1e-2 else 1e-5) * largest + relative * np.abs(np.where(finite, w, 0))
    bad = ~same & ~(finite & np.isfinite(g) & (error <= allowed))
    if not bad.any():
        return None
    error = np.where(np.isfinite(error), error, np.inf)
    at = tuple(int(i) for i in np.argwhere(bad & (error == error[bad].max()))[0])
    return f"{int(bad.sum())} of {bad.size} differ, worst {list(at)}: {got[at]}, not {want[at]} (max diff {error[bad].max():.3g})"


def bit_difference(a, b):
    """None when two arrays are equal bit for bit (any NaN equals any NaN, -0 is not 0), else what differs."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
    if a.dtype.kind == "c":
        part = np.float32 if a.dtype == np.complex64 else np.float64
        a, b = (np.ascontiguousarray(x).reshape(-1).view(part) for x in (a, b))
    if a.dtype.kind == "f":
        bits = np.dtype(f"u{a.dtype.itemsize}")
        x, y = (np.ascontiguousarray(v).reshape(-1).view(bits) for v in (a, b))
        bad = (x != y) & ~(np.isnan(a) & np.isnan(b)).reshape(-1)
    else:
        bad = (a != b).reshape(-1)
    if not bad.any():
        return None
    i = int(np.argmax(bad))
    return f"{int(bad.sum())} of {bad.size} differ in bits, first {a.reshape(-1)[i]} and {b.reshape(-1)[i]}"
