// C = A B by cuBLAS-Xt from pinned host memory, on the first GPUs of a machine: what
// `pdawl run matmul` is compared with.
//
//   nvcc -O2 -o cublasxt scripts/cublasxt.cu -lcublas
//   ./cublasxt SIZE GPUS BLOCK[,BLOCK...] REPEATS
//
// Prints a CSV line for each block size: size, gpus, block, the seconds of the fastest and
// of the median run, and the median's Tflop/s. A first run is not timed.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <cublasXt.h>
#include <vector>

static void check(bool good, const char *what) {
    if (!good) {
        std::fprintf(stderr, "cublasxt: %s failed\n", what);
        std::exit(1);
    }
}

static float *pinned(size_t numbers) {
    void *memory = nullptr;
    check(cudaHostAlloc(&memory, numbers * sizeof(float), cudaHostAllocPortable) == cudaSuccess,
          "cudaHostAlloc");
    return static_cast<float *>(memory);
}

int main(int count, char **arguments) {
    if (count != 5) {
        std::fprintf(stderr, "usage: cublasxt SIZE GPUS BLOCK[,BLOCK...] REPEATS\n");
        return 2;
    }
    const size_t n = std::strtoull(arguments[1], nullptr, 10);
    const int gpus = std::atoi(arguments[2]);
    const int repeats = std::atoi(arguments[4]);
    check(n > 0 && gpus > 0 && repeats > 0, "reading the arguments");

    float *a = pinned(n * n), *b = pinned(n * n), *c = pinned(n * n);
    unsigned state = 1;
    for (size_t i = 0; i < n * n; ++i) {
        state = state * 1664525u + 1013904223u;
        a[i] = (state >> 8) / 16777216.0f - 0.5f;
        b[i] = (state >> 9) / 8388608.0f - 0.5f;
    }
    std::memset(c, 0, n * n * sizeof(float));

    cublasXtHandle_t handle;
    check(cublasXtCreate(&handle) == CUBLAS_STATUS_SUCCESS, "cublasXtCreate");
    std::vector<int> devices;
    for (int i = 0; i < gpus; ++i) devices.push_back(i);
    check(cublasXtDeviceSelect(handle, gpus, devices.data()) == CUBLAS_STATUS_SUCCESS,
          "cublasXtDeviceSelect");
    std::printf("size,gpus,block,fastest_seconds,median_seconds,median_tflops\n");
    for (char *text = std::strtok(arguments[3], ","); text; text = std::strtok(nullptr, ",")) {
        const int block = std::atoi(text);
        check(cublasXtSetBlockDim(handle, block) == CUBLAS_STATUS_SUCCESS, "cublasXtSetBlockDim");
        const float one = 1.0f, zero = 0.0f;
        std::vector<double> seconds;
        for (int run = 0; run <= repeats; ++run) {
            const auto begin = std::chrono::steady_clock::now();
            check(cublasXtSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &zero,
                                c, n) == CUBLAS_STATUS_SUCCESS,
                  "cublasXtSgemm");
            const auto end = std::chrono::steady_clock::now();
            if (run > 0) seconds.push_back(std::chrono::duration<double>(end - begin).count());
        }
        std::sort(seconds.begin(), seconds.end());
        const double median = seconds[seconds.size() / 2];
        std::printf("%zu,%d,%d,%.4f,%.4f,%.2f\n", n, gpus, block, seconds.front(), median,
                    2.0 * n * n * n / median / 1e12);
        std::fflush(stdout);
    }
    return 0;
}
