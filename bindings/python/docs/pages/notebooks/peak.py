# %% [markdown]
# # Why is my peak 40 MB
#
# A plan says where every value lies in one arena, and when. The picture has steps from left to right and addresses from bottom to top.

# %%
import os

import restride

folder = os.environ["RESTRIDE_EXAMPLES"]
program = restride.load(f"{folder}/vit_small.pt2")
program.plan()

# %% [markdown]
# The values at the peak are in the table. `explain` says what is computed in place, what is not, and who still reads it:

# %%
program.explain()

# %% [markdown]
# A training step keeps values for backward. A budget computes cheap ones again; the result stays the same bit for bit.

# %%
joint = restride.load(f"{folder}/classifier.pt2").grad(keep="all")
plan = joint.plan()
plan.arena_bytes, plan.lower_bound_bytes

# %%
joint.compile(budget=plan.arena_bytes * 9 // 10).plan()

# %% [markdown]
# A budget that cannot be met is refused, with the smallest one that can and the values at the peak:

# %%
try:
    joint.compile(budget=1000).plan()
except restride.Error as e:
    print(e)

# %% [markdown]
# `program.report().save("report.html")` writes a page with all of it.
