# %% [markdown]
# # Remove `copy_` from your graph
#
# A decode step of a llama writes its key-value cache in place. Compilers that refuse mutation cannot take it as exported. restride
# makes the same program without mutation: what it wrote becomes declared outputs.

# %%
import os
import re

import restride

folder = os.environ["RESTRIDE_EXAMPLES"]
program = restride.load(f"{folder}/llama_decode.pt2")
program

# %% [markdown]
# The graph as exported, with the operators that write:

# %%
MUTATES = re.compile(r"= aten\.\w+_\.")
for line in program.text().splitlines():
    if MUTATES.search(line):
        print(line.strip()[:110])

# %% [markdown]
# Functionalized, none is left, and the cache's new contents are outputs:

# %%
functional = program.functionalize()
print("\n".join(functional.text().splitlines()[-3:])[:400])
assert not MUTATES.search(functional.text())

# %% [markdown]
# `save` writes a `.pt2` that `torch.export.load` takes; `portable=True` uses Core ATen alone, for TVM, ExecuTorch or IREE.

# %%
functional.save("functional.pt2")
program.functionalize(portable=True).save("portable.pt2")

# %% [markdown]
# Both compute the same, bit for bit in the first case:

# %%
args, kwargs = program.sample_inputs()
want = program(*args, **kwargs)
have = restride.load("functional.pt2")(*args, **kwargs)
(want == have).all()

# %% [markdown]
# In PyTorch the same is `restride.torch.functionalize(exported_program)`, in memory.
