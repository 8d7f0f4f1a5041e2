"""Times one model of models.py one way, in a process of its own: latency_worker.py MODEL WAY THREADS

Ways: eager, compile (torch.compile), aoti (AOTInductor), xnnpack (ExecuTorch with its delegate), onnx (ONNX Runtime). Each line
on stdin gives seconds to run; the answer is a line of JSON with `fastest` and `median` in milliseconds and `peak`, the bytes of
the process at its largest.
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import models
import torch


def xnnpack(module, args, threads):
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower
    from executorch.extension.pybindings import portable_lib

    lowered = to_edge_transform_and_lower(torch.export.export(module, args), partitioner=[XnnpackPartitioner()])
    portable_lib._unsafe_reset_threadpool(threads)
    # The program reads the buffer in every run.
    buffer = lowered.to_executorch().buffer
    program = portable_lib._load_for_executorch_from_buffer(buffer)

    def run(kept=buffer):
        return program.forward(list(args))

    return run


def onnx(module, args, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    model = torch.onnx.export(module, args, dynamo=True, verbose=False).model_proto.SerializeToString()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    given = {i.name: a.numpy() for i, a in zip(session.get_inputs(), args)}
    return lambda: session.run(None, given)


def aoti(module, args, threads):
    with tempfile.TemporaryDirectory() as folder:
        package = str(Path(folder, "model.pt2"))
        torch._inductor.aoti_compile_and_package(torch.export.export(module, args), package_path=package)
        loaded = torch._inductor.aoti_load_package(package)
    return lambda: loaded(*args)


def compiled(module, args, threads):
    run = torch.compile(module)
    return lambda: run(*args)


WAYS = {
    "eager": lambda module, args, threads: lambda: module(*args),
    "compile": compiled,
    "aoti": aoti,
    "xnnpack": xnnpack,
    "onnx": onnx,
}


def timed(run, seconds):
    end, times = time.perf_counter() + seconds, []
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    times.sort()
    return times


def main():
    name, way, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    module, args = models.MODELS[name]()
    with torch.no_grad():
        run = WAYS[way](module.eval(), args, threads)
        for _ in range(3):
            run()
        print("ready", flush=True)
        for line in sys.stdin:
            times = timed(run, float(line))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            print(json.dumps(dict(fastest=times[0], median=times[len(times) // 2], peak=peak)), flush=True)


if __name__ == "__main__":
    main()
