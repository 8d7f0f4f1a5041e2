"""Running the built command and the examples beside it, each with a time limit."""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VIAS = ("interp", "functional", "plan")


def artifact(name, profile="release"):
    """A file of this checkout's build: `restride`, `examples/train`."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / profile / name


def example(name):
    """The debug build of a Rust example, built now. `--workspace` selects the features that the tests are built with: where those
    ran, little is left to build."""
    subprocess.run(["cargo", "build", "-q", "--workspace", "--example", name], cwd=ROOT, check=True)
    return str(artifact(f"examples/{name}", "debug").resolve())


@dataclass
class Outcome:
    """The end of one command. `kind` is ok, refused (exit 1), usage (exit 2), crash or timeout; true if ok."""

    kind: str
    line: str = ""
    errors: int = 0
    seconds: float = 0.0
    stdout: str = ""
    stderr: str = ""

    def __bool__(self):
        return self.kind == "ok"


def run(command, timeout):
    """Run a command to its end or its timeout, which kills the whole process group."""
    start = time.monotonic()
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True)
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return Outcome("timeout", f"over {timeout:.0f} s", 0, time.monotonic() - start)
    seconds = time.monotonic() - start
    out, err = out.decode(errors="replace"), err.decode(errors="replace")
    text = [line for line in err.splitlines() if line.strip()]
    code, last = child.returncode, text[-1] if text else ""
    errors = sum(line.startswith("error: ") for line in text)
    if errors:
        # Message, place, source line and advice on one line.
        last = " ".join(line.strip() for line in text)
    if code < 0:
        name = signal.Signals(-code).name if -code in {s.value for s in signal.Signals} else str(-code)
        kind, last = "crash", f"{name} {last}".strip()
    elif code in (0, 1, 2):
        kind = ("ok", "refused", "usage")[code]
    else:
        # A Rust panic ends with status 101; the command means no status but 0, 1 and 2.
        panic = next((line for line in text if "panicked at" in line), last)
        kind, last = "crash", f"exit {code}: {panic}"
    return Outcome(kind, last, errors, seconds, out, err)


class Restride:
    """The command under test: `--binary`, $RESTRIDE, or the release build of this checkout."""

    def __init__(self, given=None, timeout=60.0):
        path = Path(given or os.environ.get("RESTRIDE") or artifact("restride")).resolve()
        if not os.access(path, os.X_OK):
            raise SystemExit(f"no restride at {path}: cargo build --release -p restride-cli, or name one with --binary")
        self.path, self.timeout = str(path), timeout

    def __call__(self, *arguments, timeout=None):
        return run([self.path, *map(str, arguments)], timeout or self.timeout)

    def run(self, program, via, outputs, *more, inputs=None):
        """`restride run` of a program one way, its outputs written to a file."""
        given = () if inputs is None else ("--inputs", inputs)
        return self("run", program, *given, "--outputs", outputs, "--via", via, *more)
