"""torch-mlir: its importer without decomposition by torch, lowered to linalg on tensors, run by its execution engine."""

import ctypes

import harness
import numpy as np
from torch_mlir import fx
from torch_mlir.execution_engine import ExecutionEngine
from torch_mlir.passmanager import PassManager
from torch_mlir.runtime import UnrankedMemRefDescriptor, get_unranked_memref_descriptor, unranked_memref_to_numpy

# torch-mlir's reference backend, as its own end-to-end tests lower it; that part is not in the package.
PIPELINE = (
    "func.func(refback-generalize-tensor-pad,refback-generalize-tensor-concat)",
    "func.func(tm-tensor-bufferize)",
    "one-shot-bufferize{copy-before-write bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map}",
    "refback-mlprogram-bufferize",
    "inline",
    "refback-munge-calling-conventions",
    "func.func(tm-tensor-to-loops)",
    "func.func(refback-munge-memref-copy)",
    "func.func(convert-linalg-to-loops)",
    "func.func(lower-affine)",
    "convert-scf-to-cf",
    "func.func(refback-expand-ops-for-llvm)",
    "func.func(arith-expand)",
    "func.func(convert-math-to-llvm)",
    "convert-math-to-libm",
    "expand-strided-metadata",
    "finalize-memref-to-llvm",
    "lower-affine",
    "convert-bufferization-to-memref",
    "finalize-memref-to-llvm",
    "func.func(convert-arith-to-llvm)",
    "convert-vector-to-llvm",
    "convert-func-to-llvm",
    "convert-cf-to-llvm",
    "reconcile-unrealized-casts",
)
RETURN = "refbackend_consume_func_return_"
MEMREFS = {"mrf32": np.float32, "mrf64": np.float64, "mri64": np.int64, "mri32": np.int32, "mri1": np.bool_}


def build(ep):
    explicit = harness.explicit_state(ep)
    # The verifier first: the pipeline's own error does not name the cause.
    fx.export_and_import(explicit.program, decomposition_table={}).operation.verify()
    module = fx.export_and_import(explicit.program, output_type="linalg-on-tensors", decomposition_table={})
    with module.context:
        PassManager.parse(f"builtin.module({','.join(PIPELINE)})").run(module.operation)
    returns = [name for op in module.body for name in [op.attributes["sym_name"].value] if name.startswith(RETURN)]
    engine, made, keep = ExecutionEngine(module), [], []
    for name in returns:
        kinds = name.removeprefix(RETURN).split("_")

        def consume(*values, kinds=kinds):
            made[:] = [unranked_memref_to_numpy(v, MEMREFS[k]).copy() for v, k in zip(values, kinds)]

        signature = ctypes.CFUNCTYPE(None, *[ctypes.POINTER(UnrankedMemRefDescriptor) for _ in kinds])
        keep.append(signature(consume))
        engine.register_runtime(name, keep[-1])

    def run(arrays):
        engine.invoke("main", *[ctypes.pointer(ctypes.pointer(get_unranked_memref_descriptor(a))) for a in arrays])
        return list(made), arrays

    # The callbacks have to live as long as the engine does.
    run.keep = keep
    return lambda inputs: explicit.call(run, inputs)


if __name__ == "__main__":
    harness.main(build)
