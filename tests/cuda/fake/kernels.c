/* The kernels that the fake driver knows, by the names of their entries. */
#include "fake.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static uint64_t memory(Launch *launch, int index) {
    uint64_t address;
    memcpy(&address, launch->arguments[index], sizeof address);
    return address;
}

static uint32_t number(Launch *launch, int index) {
    uint32_t value;
    memcpy(&value, launch->arguments[index], sizeof value);
    return value;
}

void *device_memory(Launch *launch, uint64_t address, size_t bytes) {
    if (launch->generation != launch->context->generation)
        return NULL;
    if (!is_reached(launch->context, address, bytes)) {
        launch->context->lost = ILLEGAL_ADDRESS;
        return NULL;
    }
    return (void *)(uintptr_t)address;
}

static uint32_t *at(Launch *launch, uint64_t address, size_t bytes) {
    return device_memory(launch, address, bytes);
}

/* (numbers, value, global offset): adds the value to the number of each work-item. */
static void add(Launch *launch) {
    uint32_t value = number(launch, 1), first = number(launch, 2);
    size_t count = (size_t)launch->groups[0] * launch->items[0];
    uint32_t *numbers = at(launch, memory(launch, 0) + 4 * (size_t)first, 4 * count);
    for (size_t i = 0; numbers && i < count; i++)
        numbers[i] += value;
}

/* (one, other, to, value): three times each number of one, that of the other one, the value
 * and the number's index. */
static void mix(Launch *launch) {
    uint32_t value = number(launch, 3);
    size_t count = (size_t)launch->groups[0] * launch->items[0];
    uint32_t *one = at(launch, memory(launch, 0), 4 * count);
    uint32_t *other = at(launch, memory(launch, 1), 4 * count);
    uint32_t *to = at(launch, memory(launch, 2), 4 * count);
    for (size_t i = 0; one && other && to && i < count; i++)
        to[i] = 3 * one[i] + other[i] + value + (uint32_t)i;
}

/* (one, other, to): their sums. */
static void sum(Launch *launch) {
    size_t count = (size_t)launch->groups[0] * launch->items[0];
    uint32_t *one = at(launch, memory(launch, 0), 4 * count);
    uint32_t *other = at(launch, memory(launch, 1), 4 * count);
    uint32_t *to = at(launch, memory(launch, 2), 4 * count);
    for (size_t i = 0; one && other && to && i < count; i++)
        to[i] = one[i] + other[i];
}

/* (numbers, count): takes a while, and then counts the numbers up. */
static void slow(Launch *launch) {
    uint32_t count = number(launch, 1);
    pthread_mutex_unlock(&lock);
    usleep(20000);
    pthread_mutex_lock(&lock);
    uint32_t *numbers = at(launch, memory(launch, 0), 4 * (size_t)count);
    for (size_t i = 0; numbers && i < count; i++)
        numbers[i] += 1;
}

/* (numbers, width, group offsets, global offsets, groups): each work-item adds 1 to its
 * number, and its group's number and the count of groups in the upper bits. */
static void place(Launch *launch) {
    uint32_t width = number(launch, 1);
    for (unsigned gy = 0; gy < launch->groups[1]; gy++)
        for (unsigned gx = 0; gx < launch->groups[0]; gx++)
            for (unsigned y = 0; y < launch->items[1]; y++)
                for (unsigned x = 0; x < launch->items[0]; x++) {
                    size_t column = number(launch, 4) + gx * launch->items[0] + x;
                    size_t row = number(launch, 5) + gy * launch->items[1] + y;
                    uint32_t group = gy + number(launch, 3);
                    uint64_t address = memory(launch, 0) + 4 * (row * width + column);
                    uint32_t *own = at(launch, address, 4);
                    if (own)
                        *own += 1 + (group << 8) + (number(launch, 6) << 20);
                }
}

/* (numbers, local, local): the offsets of both and the bytes of all local memory. */
static void local(Launch *launch) {
    uint32_t *numbers = at(launch, memory(launch, 0), 12);
    if (!numbers)
        return;
    numbers[0] = (uint32_t)memory(launch, 1);
    numbers[1] = (uint32_t)memory(launch, 2);
    numbers[2] = launch->local;
}

/* (numbers, scratch): what scratch has is added and counted up. */
static void scratch(Launch *launch) {
    uint32_t *numbers = at(launch, memory(launch, 0), 4);
    uint32_t *own = at(launch, memory(launch, 1), 4);
    if (numbers && own)
        *numbers += ++*own;
}

static uint64_t first_of(Launch *launch, int index) {
    uint64_t value;
    memcpy(&value, launch->arguments[index], sizeof value);
    return value;
}

/* The kernels of pdawl that go with libraries' calls, and a product. Their arguments are those
 * of kernels/lu.cl, kernels/triangle_tile.cl and kernels/gemm_tile.cl. */
#define KERNELS_OF(real, suffix)                                                                 \
    static real *numbers_##suffix(Launch *launch, int index, uint64_t first, size_t count) {     \
        uint64_t address = memory(launch, index) + first * sizeof(real);                         \
        return device_memory(launch, address, count * sizeof(real));                             \
    }                                                                                            \
                                                                                                 \
    static void product_##suffix(Launch *launch) {                                               \
        pthread_mutex_unlock(&lock);                                                             \
        usleep(100000);                                                                           \
        pthread_mutex_lock(&lock);                                                               \
        size_t m = number(launch, 3), n = number(launch, 4), k = number(launch, 5);              \
        size_t lda = number(launch, 6), ldb = number(launch, 7), ldc = number(launch, 8);        \
        real alpha, beta;                                                                        \
        memcpy(&alpha, launch->arguments[12], sizeof alpha);                                     \
        memcpy(&beta, launch->arguments[13], sizeof beta);                                       \
        real *a = numbers_##suffix(launch, 0, first_of(launch, 9), (m - 1) * lda + k);              \
        real *b = numbers_##suffix(launch, 1, first_of(launch, 10), (k - 1) * ldb + n);             \
        real *c = numbers_##suffix(launch, 2, first_of(launch, 11), (m - 1) * ldc + n);             \
        for (size_t i = 0; a && b && c && i < m; i++)                                            \
            for (size_t j = 0; j < n; j++) {                                                     \
                double sum = 0;                                                                  \
                for (size_t l = 0; l < k; l++)                                                   \
                    sum += (double)a[i * lda + l] * b[l * ldb + j];                              \
                real *to = c + i * ldc + j;                                                      \
                *to = (real)(alpha * sum + (beta == 0 ? 0 : (double)beta * *to));                \
            }                                                                                    \
    }                                                                                            \
                                                                                                 \
    static void potrf_unfinished_##suffix(Launch *launch) {                                      \
        size_t n = number(launch, 1), lda = number(launch, 2);                                   \
        real *a = numbers_##suffix(launch, 0, first_of(launch, 3), (n - 1) * lda + n);              \
        int32_t *info = device_memory(launch, memory(launch, 4), 4);                             \
        for (size_t row = 0; a && info && *info > 0 && row < n; row++)                           \
            for (size_t column = (size_t)*info - 1; column <= row; column++)                     \
                a[row * lda + column] = (real)NAN;                                               \
    }                                                                                            \
                                                                                                 \
    static void lu_panel_##suffix(Launch *launch, int step) {                                    \
        size_t m = number(launch, 2), n = number(launch, 3), stride = number(launch, 6);         \
        uint32_t first = number(launch, 4);                                                      \
        real *a = numbers_##suffix(launch, 0, first_of(launch, 5), (m - 1) * stride + n);           \
        uint32_t *pivots = at(launch, memory(launch, 1) + 4 * first_of(launch, 7), 4 * n);          \
        size_t bytes = m * n * sizeof(real) + (2 * n + 1) * 4;                                   \
        real *scratch = device_memory(launch, memory(launch, 8), bytes);                         \
        if (!a || !pivots || !scratch)                                                           \
            return;                                                                              \
        uint32_t *exchanged = (uint32_t *)(scratch + m * n), *infinite = exchanged + n;          \
        for (size_t column = 0; column < n; column++) {                                          \
            if (step == 0)                                                                       \
                infinite[column] = 0;                                                            \
            for (size_t row = 0; step < 2 && row < m; row++) {                                   \
                real *own = a + row * stride + column, *other = scratch + column * m + row;      \
                if (step == 0)                                                                   \
                    *other = *own;                                                               \
                else                                                                             \
                    *own = *other;                                                               \
                if (step == 1 && row >= column && !isfinite(*other))                             \
                    infinite[column] = 1;                                                        \
            }                                                                                    \
            if (step == 2)                                                                       \
                pivots[column] = infinite[n] == column + 1 || scratch[column * m + column] == 0  \
                                     ? 0xffffffffu                                               \
                                     : infinite[column] ? 0xfffffffeu                            \
                                                        : first + exchanged[column] - 1;         \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    static void lu_to_columns_##suffix(Launch *launch) { lu_panel_##suffix(launch, 0); }         \
    static void lu_from_columns_##suffix(Launch *launch) { lu_panel_##suffix(launch, 1); }       \
    static void lu_pivots_##suffix(Launch *launch) { lu_panel_##suffix(launch, 2); }             \
                                                                                                 \
    static void lu_row_exchange_##suffix(Launch *launch) {                                       \
        size_t m = number(launch, 3), w = number(launch, 4), n = number(launch, 5);              \
        size_t stride = number(launch, 11);                                                      \
        uint32_t *pivots = at(launch, memory(launch, 1) + 4 * first_of(launch, 9), 4 * n);          \
        real *b = numbers_##suffix(launch, 2, first_of(launch, 10), (m - 1) * stride + w);          \
        for (size_t row = 0; pivots && b && row < n; row++) {                                    \
            size_t other = pivots[row] - number(launch, 6);                                      \
            for (size_t column = 0; other < m && column < w; column++) {                         \
                real kept = b[row * stride + column];                                            \
                b[row * stride + column] = b[other * stride + column];                           \
                b[other * stride + column] = kept;                                               \
            }                                                                                    \
        }                                                                                        \
    }

KERNELS_OF(float, f32)
KERNELS_OF(double, f64)

static const struct {
    const char *name;
    Kernel kernel;
} KERNELS[] = {
    {"add", add}, {"mix", mix}, {"sum", sum}, {"slow", slow}, {"place", place}, {"local", local},
    {"scratch", scratch},
    {"product_f32", product_f32},
    {"product_f64", product_f64},
    {"potrf_unfinished_f32", potrf_unfinished_f32},
    {"potrf_unfinished_f64", potrf_unfinished_f64},
    {"lu_to_columns_f32", lu_to_columns_f32},
    {"lu_to_columns_f64", lu_to_columns_f64},
    {"lu_from_columns_f32", lu_from_columns_f32},
    {"lu_from_columns_f64", lu_from_columns_f64},
    {"lu_pivots_f32", lu_pivots_f32},
    {"lu_pivots_f64", lu_pivots_f64},
    {"lu_row_exchange_f32", lu_row_exchange_f32},
    {"lu_row_exchange_f64", lu_row_exchange_f64},
};

Kernel kernel_named(const char *name) {
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++)
        if (strcmp(name, KERNELS[i].name) == 0)
            return KERNELS[i].kernel;
    return NULL;
}
