"""Data parallel training over two unlike processes: `python torch_parallel.py`. Each step's batch
is divided by what the steps before took, and gradients are summed over all samples, so that the
result is that of one process with the whole batch. Rank 1 is slowed: it computes each part thrice."""

import os
import time

import pdawl
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

BATCH, STEPS, RANKS = 512, 20, 2


def train(rank: int, port: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    samples, targets = torch.randn(BATCH, 256), torch.randn(BATCH, 1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    divider = pdawl.Divider(units=BATCH, parts=RANKS, granularity=8)
    for _ in range(STEPS):
        part = divider.next()[rank]
        began = time.perf_counter()
        for _ in range(1 + 2 * rank):
            optimizer.zero_grad()
            error = model(samples[part.start : part.stop]) - targets[part.start : part.stop]
            # A sum: the parts are not of one length, so the mean is that of the whole batch.
            (error.square().sum() / BATCH).backward()
        seconds = torch.tensor([time.perf_counter() - began], dtype=torch.float64)
        all_seconds = [torch.zeros(1, dtype=torch.float64) for _ in range(RANKS)]
        dist.all_gather(all_seconds, seconds)
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        divider.took([one.item() for one in all_seconds])
    if rank == 0:
        print(divider.why())
        loss = (model(samples) - targets).square().mean()
        print(f"loss {loss.item():.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(29_517,), nprocs=RANKS)
