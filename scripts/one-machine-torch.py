"""PyTorch's seconds on one GPU, data in pinned host memory at the begin and the end: medians of 3."""

import statistics
import time

import torch


def seconds(act):
    act()
    taken = []
    for _ in range(3):
        torch.cuda.synchronize()
        began = time.perf_counter()
        act()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def on_gpu(given, compute):
    result = torch.empty(given.shape, dtype=given.dtype, pin_memory=True)
    return seconds(lambda: result.copy_(compute(given.cuda(non_blocking=True))))


matrix = torch.rand(16384, 16384).pin_memory()
lu = on_gpu(matrix, lambda a: torch.linalg.lu_factor(a)[0])
on_device = matrix.cuda()
definite = (on_device @ on_device.T + 16384 * torch.eye(16384, device="cuda")).cpu().pin_memory()
cholesky = on_gpu(definite, torch.linalg.cholesky)
fft = on_gpu(torch.rand(8192, 8192, dtype=torch.complex64).pin_memory(), torch.fft.fft2)
print(f"PyTorch: LU 16384 {lu:.3f} s, FFT 8192 {fft:.4f} s, Cholesky 16384 {cholesky:.3f} s")
