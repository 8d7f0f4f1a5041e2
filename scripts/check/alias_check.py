#!/usr/bin/env python3
"""Hold restride to eager PyTorch's aliasing on the programs of fixtures/alias.

Each case with a .pt2 and without a custom operator runs as interp, functional and plan on the case's `inputs`. The tensor file
that `restride run` writes is compared with the case's `after` (the inputs after the run, then the outputs):

  values     within tolerance, integers and booleans exactly; input storages in full, cells that no tensor shows included
  metadata   dtype, sizes and strides of every tensor, exactly
  sharing    two tensors share a storage exactly where eager's do, inputs and outputs alike; offsets are eager's in the
             inputs' storages, and up to one constant a storage elsewhere

Where eager raises (`eager_error`), exit status 1 and one line of error are required. Exit status 1 when any case fails;
the last line is `N passed, N failed`.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT, VIAS, Restride
from lib.driver import first_of, parser, report_cases, scratch
from lib.pt2 import Pt2
from lib.tensor_files import differences


def check(case, program, restride, via):
    """(status, detail) of one case, run one way."""
    with scratch() as tmp:
        given, out = tmp / "inputs.json", tmp / "outputs.json"
        given.write_text(json.dumps(case["inputs"]))
        outcome = restride.run(program, via, out, inputs=given)
        if outcome.kind in ("crash", "timeout", "usage"):
            return outcome.kind, outcome.line
        # A case with `after` has a meaning, even if eager refuses to differentiate it.
        if "after" not in case:
            if outcome:
                return "accepted", f"eager refuses: {case['eager_error'][:80]}"
            return ("ok", "") if outcome.errors == 1 else ("WRONG", f"{outcome.errors} errors, not one")
        if not outcome:
            return "refused", outcome.line
        try:
            problems = differences(case["after"], json.loads(out.read_text()), case["n_inputs"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as e:
            return "WRONG", f"unusable output file: {type(e).__name__}: {e}".splitlines()[0]
    return ("WRONG", first_of(problems)) if problems else ("ok", "")


def main():
    p = parser(__doc__, "names", "--binary", "--timeout", "--json")
    p.add_argument("--fixtures", type=Path, default=ROOT / "fixtures/alias")
    p.add_argument("--via", action="append", choices=VIAS)
    o = p.parse_intermixed_args()
    restride, vias = Restride(o.binary, o.timeout), o.via or VIAS
    rows, skipped = {}, []
    cases = {f.stem: f for f in sorted(o.fixtures.glob("*.json"))}
    for name, file in cases.items():
        program = file.with_suffix(".pt2")
        if o.names and name not in o.names:
            continue
        if not program.exists():
            skipped.append(f"{name}: torch cannot save it")
        elif custom := [t for t in Pt2.read(program).targets() if t.startswith("torch.ops.abugs.")]:
            skipped.append(f"{name}: uses {custom[0]}")
        else:
            case = json.loads(file.read_text())
            rows[name] = {via: check(case, program, restride, via) for via in vias}
    missing = [n for n in o.names if n not in cases]
    print(f"skipped {len(skipped)}: " + "; ".join(skipped))
    for n in missing:
        print(f"no case is called {n}")
    print(f"{len(rows)} cases, {', '.join(vias)}")
    return report_cases(rows, vias, o.json, neutral=(), skipped=skipped, missing=missing)


if __name__ == "__main__":
    sys.exit(main())
