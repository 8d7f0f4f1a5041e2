"""The command ``restride``, as ``python -m restride``."""

from __future__ import annotations

import signal
import sys

from restride import _restride


def main() -> int:
    """Carry out the command line and return the exit status."""
    # The work is not Python's: an interrupt ends it at once, and a closed pipe is no error.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    return _restride.cli(["restride", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
