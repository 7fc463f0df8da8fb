/* A library of factors of matrices stored by columns, as cuSOLVER, which computes on the fake
 * driver's streams. */
#include "fake.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID = 3 };

typedef struct {
    Stream *stream;
} Handle;

static int failure(const char *call) {
    pthread_mutex_lock(&lock);
    int code = fault(call, NULL);
    pthread_mutex_unlock(&lock);
    return code;
}

int cusolverGetVersion(int *version) {
    *version = 12000;
    return 0;
}

int cusolverDnCreate(Handle **handle) {
    int code = failure("cusolverDnCreate");
    if (code)
        return code;
    *handle = calloc(1, sizeof **handle);
    count_handles(1);
    return 0;
}

int cusolverDnDestroy(Handle *handle) {
    free(handle);
    count_handles(-1);
    return 0;
}

int cusolverDnSetStream(Handle *handle, Stream *stream) {
    handle->stream = stream;
    return 0;
}

typedef struct {
    int uplo, m, n, lda, room_numbers;
    uint64_t a, room, pivots, info;
} Work;

#define OF(real, letter)                                                                         \
    static void *spoiled_##letter(Launch *launch, const Work *work) {                            \
        take_time();                                                                             \
        size_t bytes = (size_t)work->room_numbers * sizeof(real);                                \
        void *room = device_memory(launch, work->room, bytes);                                   \
        if (room)                                                                                \
            memset(room, 0x5a, bytes);                                                           \
        size_t count = (size_t)(work->n - 1) * (size_t)work->lda + (size_t)work->m;              \
        return device_memory(launch, work->a, count * sizeof(real));                             \
    }                                                                                            \
                                                                                                 \
    /* Stops where the matrix is not positive definite. */                                       \
    static void potrf_##letter(Launch *launch) {                                                 \
        Work w = *(Work *)launch->arguments[0];                                                  \
        real *a = spoiled_##letter(launch, &w);                                                  \
        int32_t *info = device_memory(launch, w.info, 4);                                        \
        if (!a || !info)                                                                         \
            return;                                                                              \
        /* Row and column of the upper or the lower triangle. */                                 \
        size_t down = w.uplo ? (size_t)w.lda : 1, right = w.uplo ? 1 : (size_t)w.lda;            \
        *info = 0;                                                                               \
        for (int column = 0; column < w.n; column++)                                             \
            for (int row = column; row < w.n; row++) {                                           \
                double sum = a[row * down + column * right];                                     \
                for (int before = 0; before < column; before++)                                  \
                    sum -= (double)a[row * down + before * right]                                \
                           * a[column * down + before * right];                                  \
                if (row == column && !(sum > 0)) {                                               \
                    *info = column + 1;                                                          \
                    return;                                                                      \
                }                                                                                \
                a[row * down + column * right] =                                                 \
                    (real)(row == column ? sqrt(sum) : sum / a[column * down + column * right]); \
            }                                                                                    \
    }                                                                                            \
                                                                                                 \
    static void getrf_##letter(Launch *launch) {                                                 \
        Work w = *(Work *)launch->arguments[0];                                                  \
        real *a = spoiled_##letter(launch, &w);                                                  \
        int32_t *info = device_memory(launch, w.info, 4);                                        \
        int least = w.m < w.n ? w.m : w.n;                                                       \
        int32_t *pivots = device_memory(launch, w.pivots, 4 * (size_t)least);                    \
        if (!a || !info || !pivots)                                                              \
            return;                                                                              \
        *info = 0;                                                                               \
        for (int column = 0; column < least; column++) {                                         \
            real *own = a + (size_t)column * (size_t)w.lda;                                      \
            int pivot = column;                                                                  \
            for (int row = column + 1; row < w.m; row++)                                         \
                if (fabs((double)own[row]) > fabs((double)own[pivot]))                           \
                    pivot = row;                                                                 \
            pivots[column] = pivot + 1;                                                          \
            if (own[pivot] == 0 && !*info)                                                       \
                *info = column + 1;                                                              \
            for (int of = 0; of < w.n; of++) {                                                   \
                real *other = a + (size_t)of * (size_t)w.lda, kept = other[column];              \
                other[column] = other[pivot];                                                    \
                other[pivot] = kept;                                                             \
            }                                                                                    \
            for (int row = column + 1; own[column] != 0 && row < w.m; row++)                     \
                own[row] /= own[column];                                                         \
            for (int of = column + 1; of < w.n; of++) {                                          \
                real *other = a + (size_t)of * (size_t)w.lda;                                    \
                for (int row = column + 1; row < w.m; row++)                                     \
                    other[row] = (real)(other[row] - (double)own[row] * other[column]);          \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    int cusolverDn##letter##potrf_bufferSize(Handle *handle, int uplo, int n, void *a, int lda,  \
                                             int *numbers) {                                     \
        (void)handle, (void)uplo, (void)a;                                                       \
        *numbers = n + 3;                                                                        \
        return lda < n ? INVALID : failure("cusolverDnPotrf_bufferSize");                        \
    }                                                                                            \
                                                                                                 \
    int cusolverDn##letter##potrf(Handle *handle, int uplo, int n, void *a, int lda, void *room, \
                                  int numbers, void *info) {                                     \
        Work work = {.uplo = uplo, .m = n, .n = n, .lda = lda, .room_numbers = numbers};         \
        work.a = (uintptr_t)a, work.room = (uintptr_t)room, work.info = (uintptr_t)info;         \
        int code = lda < n ? INVALID : failure("cusolverDnPotrf");                               \
        if (!code)                                                                               \
            enqueue_computation(handle->stream, potrf_##letter, &work, sizeof work);             \
        return code;                                                                             \
    }                                                                                            \
                                                                                                 \
    int cusolverDn##letter##getrf_bufferSize(Handle *handle, int m, int n, void *a, int lda,     \
                                             int *numbers) {                                     \
        (void)handle, (void)a;                                                                   \
        *numbers = m + n;                                                                        \
        return lda < m ? INVALID : failure("cusolverDnGetrf_bufferSize");                        \
    }                                                                                            \
                                                                                                 \
    int cusolverDn##letter##getrf(Handle *handle, int m, int n, void *a, int lda, void *room,    \
                                  void *pivots, void *info) {                                    \
        Work work = {.m = m, .n = n, .lda = lda, .room_numbers = m + n};                         \
        work.a = (uintptr_t)a, work.room = (uintptr_t)room, work.info = (uintptr_t)info;         \
        work.pivots = (uintptr_t)pivots;                                                         \
        int code = lda < m ? INVALID : failure("cusolverDnGetrf");                               \
        if (!code)                                                                               \
            enqueue_computation(handle->stream, getrf_##letter, &work, sizeof work);             \
        return code;                                                                             \
    }

OF(float, S)
OF(double, D)
