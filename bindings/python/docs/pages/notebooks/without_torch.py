# %% [markdown]
# # Run without torch

# %%
import os
import sys

import numpy as np
import restride

folder = os.environ["RESTRIDE_EXAMPLES"]
program = restride.load(f"{folder}/llama_decode.pt2")
program.inputs, program.outputs

# %% [markdown]
# A call reads arrays where they are, and keeps the state, here the key-value cache, between calls.

# %%
args, kwargs = program.sample_inputs()
token, position = args if args else kwargs.values()
program.reset()
for step in range(4):
    position[:] = step
    logits = program(token, position)
    token = logits[:, -1:].argmax(-1)
    print(step, token.item())

# %% [markdown]
# State is a mapping; `memory` shows the state's own memory.

# %%
cache = program.state.memory("key_cache_0")
cache.shape, float(np.abs(cache).sum())

# %% [markdown]
# A session binds inputs and outputs once. A run then does nothing but compute:

# %%
session = program.session(token, position)
first = session.run()
first is session.run()

# %%
"torch" in sys.modules
