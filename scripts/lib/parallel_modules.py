"""Tensor-parallel modules, as torch.distributed.tensor makes them, and their exports for one rank."""

import torch
import torch.distributed as dist
import torch.utils._pytree as pytree
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
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


def column_row(mesh):
    return parallelize_module(Mlp(), mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})


def columns(mesh):
    return parallelize_module(Gathered(), mesh, {"up": ColwiseParallel(output_layouts=Replicate())})


def sequence(mesh):
    model = Normed()
    plan = {
        "norm": SequenceParallel(sequence_dim=0),
        "mlp": PrepareModuleInput(input_layouts=(Shard(0),), desired_input_layouts=(Replicate(),)),
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(output_layouts=Shard(0)),
    }
    parallelize_module(model.mlp, mesh, {"up": plan["mlp.up"], "down": plan["mlp.down"]})
    parallelize_module(model, mesh, {"norm": plan["norm"], "mlp": plan["mlp"]})
    whole = {
        "": PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Shard(0),), use_local_output=True),
    }
    parallelize_module(model, mesh, whole)
    return parallelize_module(model, mesh, {"": PrepareModuleOutput(output_layouts=(Shard(0),), desired_output_layouts=(Replicate(),))})


def placed(mesh):
    model = Placed()
    from torch.distributed.tensor import distribute_tensor

    model.weight = torch.nn.Parameter(distribute_tensor(model.weight.detach(), mesh, [Shard(1)], src_data_rank=None))
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
