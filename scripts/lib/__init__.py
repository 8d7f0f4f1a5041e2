"""Shared by the scripts. `command` and `driver` need the standard library only, `values` and `pt2` numpy, the rest torch.

Importing it first sets what torch and its profiler read from the environment when they are imported.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("KINETO_LOG_LEVEL", "9")
