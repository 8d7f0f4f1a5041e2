"""Tensor-parallel modules, as torch.distributed.tensor makes them, and their exports for one rank."""

import torch
import torch.distributed as dist
import torch.utils._pytree as pytree
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class Normed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mlp = torch.nn.LayerNorm(8), Mlp()

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Gathered(torch.nn.Module):
    """Column-parallel only: the result is gathered along its last dimension."""

    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(8, 12)

    def forward(self, x):
        return torch.tanh(self.up(x))


class Placed(torch.nn.Module):
    """A DTensor of the module's own, redistributed from one dimension to the other."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        rows = DTensor.from_local(x, self.weight.device_mesh, [Replicate()], run_check=False)
        product = torch.mm(rows, self.weight)
        return product.redistribute(placements=[Replicate()]).to_local()


def made_parallel(model, mesh, plan):
    # Each rank takes its part of weights that it has: a fake group scatters none.
    return parallelize_module(model, mesh, plan, src_data_rank=None)


def column_row(mesh):
    return made_parallel(Mlp(), mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})


def columns(mesh):
    return made_parallel(Gathered(), mesh, {"up": ColwiseParallel(output_layouts=Replicate())})


def sequence(mesh):
    """Rows between the layers are divided among the ranks."""
    model, rows, whole = Normed(), Shard(0), Replicate()
    made_parallel(model.mlp, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel(output_layouts=rows)})
    plan = {
        "norm": SequenceParallel(sequence_dim=0),
        "mlp": PrepareModuleInput(input_layouts=(rows,), desired_input_layouts=(whole,)),
    }
    made_parallel(model, mesh, plan)
    inputs = PrepareModuleInput(input_layouts=(whole,), desired_input_layouts=(rows,), use_local_output=True)
    made_parallel(model, mesh, {"": inputs})
    return made_parallel(
        model, mesh, {"": PrepareModuleOutput(output_layouts=(rows,), desired_output_layouts=(whole,))}
    )


def placed(mesh):
    model = Placed()
    weight = distribute_tensor(model.weight.detach(), mesh, [Shard(1)], src_data_rank=None)
    model.weight = torch.nn.Parameter(weight)
    return model


MODULES = {"column_row": column_row, "columns": columns, "sequence": sequence, "placed": placed}


def parallel(name):
    """A module on the ranks of the process group; each rank has its part of the same weights."""
    torch.manual_seed(3)
    return MODULES[name](init_device_mesh("cpu", (dist.get_world_size(),)))


def exported(name, x):
    """The program of this rank, with its part of the weights: plain tensors, and collectives."""
    if DTensorSpec not in pytree.SUPPORTED_NODES:
        pytree.register_constant(DTensorSpec)
    return torch.export.export(parallel(name), (x,)).run_decompositions()
