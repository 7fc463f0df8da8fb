#!/usr/bin/env python3
"""Compares a transformer layer in pdawl and PyTorch on one machine.

    scripts/compare-pytorch.py [--pdawl PATH] [--out FILE.json] [--repeats 21]
        [--heads 16] [--beta 64,128,256,512] [--queues 8]

The workload is one layer of the PySchedCL paper's transformer in single
precision without TF32. Input, weights and results stay on the GPU. PyTorch
computes the layer head by head (eight operations each, as in the paper's graph)
and batched over all heads. pdawl computes it by clustering on one queue and on
several, and with --batch. PyTorch is timed from the first call until the device
is synchronised, pdawl from its first decision until the host has seen the end of
the last command. Figures are medians in milliseconds. For each size pdawl runs
first, then PyTorch.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pdawl", default="./target/release/pdawl")
    parser.add_argument("--out", help="write all figures and pdawl's reports to this file")
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--beta", default="64,128,256,512")
    parser.add_argument("--queues", type=int, default=8)
    parser.add_argument("--device", help="the GPU, as pdawl names it [default: the first]")
    options = parser.parse_args()
    options.device = options.device or gpu(options)
    results = []
    for beta in (int(beta) for beta in options.beta.split(",")):
        results.append(compare(options, beta))
        print_row(options, results[-1])
        if options.out:
            with open(options.out, "w", encoding="utf-8") as out:
                json.dump(results, out, indent=1)


def gpu(options):
    command = [options.pdawl, "devices", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    for device in json.loads(done.stdout)["devices"]:
        if device["kind"] == "gpu":
            return device["name"]
    sys.exit("no GPU; `pdawl devices` lists the devices")


def compare(options, beta):
    runs = {
        "one queue": pdawl(options, beta, "--queues", "gpu=1"),
        "queues": pdawl(options, beta, "--queues", f"gpu={options.queues}"),
        "batch": pdawl(options, beta, "--batch", "--queues", "gpu=1"),
    }
    return {"beta": beta, "heads": options.heads, "pytorch": pytorch(options, beta), "pdawl": runs}


def pdawl(options, beta, *more):
    command = [
        options.pdawl, "run", "transformer", "--heads", str(options.heads), "--beta", str(beta),
        "--policy", "clustering", "--devices", options.device, "--keep-inputs",
        "--leave-results", "--repeats", str(options.repeats), "--format", "json", *more,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def pytorch(options, beta):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)
    heads, scale = options.heads, beta**-0.5
    with torch.no_grad():
        x = torch.randn(beta, beta, device="cuda")
        w_q, w_k, w_v, w = (torch.randn(heads, beta, beta, device="cuda") * scale for _ in range(4))

        def loop():
            results = []
            for head in range(heads):
                q, k, v = x @ w_q[head], x @ w_k[head], x @ w_v[head]
                transposed = k.t().contiguous()
                weights = torch.softmax((q @ transposed) * scale, dim=-1)
                results.append((weights @ v) @ w[head])
            return results

        def batched():
            q, k, v = x @ w_q, x @ w_k, x @ w_v
            weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)) * scale, dim=-1)
            return torch.bmm(torch.bmm(weights, v), w)

        # Compare the two implementations before timing them.
        difference = (torch.stack(loop()) - batched()).abs().max().item()
        if not difference < 1e-3:
            sys.exit(f"PyTorch's two implementations differ by {difference}")
        seconds = {"loop": [], "batched": []}
        for repeat in range(options.repeats + 3):
            for name, compute in (("loop", loop), ("batched", batched)):
                torch.cuda.synchronize()
                start = time.perf_counter()
                compute()
                torch.cuda.synchronize()
                if repeat >= 3:
                    seconds[name].append(time.perf_counter() - start)
    return {
        "version": torch.__version__,
        "device": torch.cuda.get_device_name(),
        "seconds": seconds,
    }


def print_row(options, result):
    theirs = {
        name: statistics.median(seconds) * 1e3
        for name, seconds in result["pytorch"]["seconds"].items()
    }
    ours = {name: run["seconds"] * 1e3 for name, run in result["pdawl"].items()}
    print(
        f"beta {result['beta']:4}, {result['heads']} heads: PyTorch loop {theirs['loop']:.3f} ms, "
        f"batched {theirs['batched']:.3f} ms; pdawl one queue {ours['one queue']:.3f} ms, "
        f"{options.queues} queues {ours['queues']:.3f} ms ({theirs['loop'] / ours['queues']:.2f} "
        f"times the loop's speed), batch {ours['batch']:.3f} ms "
        f"({theirs['batched'] / ours['batch']:.2f} times the batched one's)",
        flush=True,
    )


if __name__ == "__main__":
    main()
