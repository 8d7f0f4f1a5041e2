# %% [markdown]
# # Train on the device
#
# `train_step` makes one program of forward, backward and update. It updates every parameter in its own memory, as soon as its gradient
# is known.

# %%
import os

import restride

folder = os.environ["RESTRIDE_EXAMPLES"]
program = restride.load(f"{folder}/classifier.pt2")
step = program.train_step("adam", lr=0.01)
step

# %%
args, kwargs = step.sample_inputs()
losses = [float(step(*args, **kwargs)) for _ in range(20)]
losses[0], losses[-1]

# %%
assert losses[-1] < losses[0] / 2

# %% [markdown]
# The memory of a step, parameters and optimizer state beside it:

# %%
step.plan()

# %% [markdown]
# Trained weights are the state; the program for inference takes them over:

# %%
for name in program.state:
    program.state[name] = step.state[name]
float(program(*args, **kwargs))
