/* A library of matrices stored by columns, as cuBLAS, which computes on the fake driver's
 * streams, in double precision and with simple loops. */
#include "fake.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_INITIALIZED = 1, INVALID = 7, NOT_SUPPORTED = 15 };

/* How numbers are stored, and how products are computed, as cuBLAS counts. */
enum { SINGLES = 0, DOUBLES = 1, HALVES = 2, BRAIN_FLOATS = 14 };
enum { IN_SINGLES = 68, IN_DOUBLES = 70, IN_TF32 = 77 };

typedef struct {
    Stream *stream;
    uint64_t room;
    size_t room_bytes;
} Handle;

static int failure(const char *call) {
    pthread_mutex_lock(&lock);
    int code = fault(call, NULL);
    pthread_mutex_unlock(&lock);
    return code;
}

int cublasCreate_v2(Handle **handle) {
    int code = failure("cublasCreate");
    if (code)
        return code;
    *handle = calloc(1, sizeof **handle);
    count_handles(1);
    return 0;
}

int cublasDestroy_v2(Handle *handle) {
    free(handle);
    count_handles(-1);
    return 0;
}

int cublasGetVersion_v2(Handle *handle, int *version) {
    (void)handle;
    *version = 130002;
    return 0;
}

/* Gives up the memory that was lent before. */
int cublasSetStream_v2(Handle *handle, Stream *stream) {
    *handle = (Handle){.stream = stream};
    return 0;
}

int cublasSetWorkspace_v2(Handle *handle, void *room, size_t bytes) {
    if ((uintptr_t)room % 16 || !bytes)
        return INVALID;
    handle->room = (uintptr_t)room;
    handle->room_bytes = bytes;
    return 0;
}

/* A computation, and the memory that it spoils. */
typedef struct {
    uint64_t room;
    size_t room_bytes;
    /* How the factors and the result of a product are stored, and how it is computed. */
    int factors, result, compute;
    int side, uplo, first, second, diagonal;
    int m, n, k;
    double alpha, beta;
    uint64_t a, b, c;
    int lda, ldb, ldc;
    int64_t a_distance, b_distance, c_distance;
    int count;
} Work;

static int begin(const char *call, Handle *handle, Work *work) {
    int code = failure(call);
    if (code)
        return code;
    hesitate();
    if (!handle->stream || !handle->room)
        return NOT_INITIALIZED;
    work->room = handle->room;
    work->room_bytes = handle->room_bytes;
    return 0;
}

static size_t extent(int rows, int columns, int stride) {
    return (size_t)(columns - 1) * (size_t)stride + (size_t)rows;
}

static void spoil(Launch *launch, const Work *work) {
    take_time();
    void *room = device_memory(launch, work->room, work->room_bytes);
    if (room)
        memset(room, 0x5a, work->room_bytes < 4096 ? work->room_bytes : 4096);
}

static size_t bytes_of(int type) {
    return type == DOUBLES ? 8 : type == SINGLES ? 4 : 2;
}

static float single_of(uint32_t bits) {
    float single;
    memcpy(&single, &bits, sizeof single);
    return single;
}

static uint32_t bits_of(float single) {
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return bits;
}

/* A single to the nearest one without so many bits at its end, in a tie to the even one. */
static float without_bits(float single, int count) {
    uint32_t bits = bits_of(single), unit = (uint32_t)1 << count;
    if (single != single || single - single != 0)
        return single;
    return single_of((bits + unit / 2 - 1 + (bits / unit & 1)) & ~(unit - 1));
}

static double half_value(uint16_t bits) {
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double value = exponent == 31 ? (mantissa ? NAN : INFINITY)
        : exponent ? ldexp(1024 + mantissa, exponent - 25)
                   : ldexp(mantissa, -24);
    return bits >> 15 ? -value : value;
}

static uint16_t half_of(double value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (value != value)
        return sign | 0x7e00;
    int exponent = 0;
    frexp(value, &exponent);
    /* The distance of the halves there; what is small has that of the least ones. */
    int unit = (exponent < -13 ? -13 : exponent) - 11;
    double units = nearbyint(ldexp(fabs(value), -unit));
    if (ldexp(units, unit) > 65504)
        return sign | 0x7c00;
    /* A carry of the mantissa reaches the exponent. */
    return sign | (uint16_t)(units + (units < 1024 ? 0 : ldexp(unit + 24, 10)));
}

static double number_at(const void *memory, int type, size_t at) {
    switch (type) {
    case SINGLES:
        return ((const float *)memory)[at];
    case DOUBLES:
        return ((const double *)memory)[at];
    case HALVES:
        return half_value(((const uint16_t *)memory)[at]);
    default:
        return single_of((uint32_t)((const uint16_t *)memory)[at] << 16);
    }
}

static void store_at(void *memory, int type, size_t at, double number) {
    switch (type) {
    case SINGLES:
        ((float *)memory)[at] = (float)number;
        break;
    case DOUBLES:
        ((double *)memory)[at] = number;
        break;
    case HALVES:
        ((uint16_t *)memory)[at] = half_of((float)number);
        break;
    default:
        ((uint16_t *)memory)[at] = bits_of(without_bits((float)number, 16)) >> 16;
    }
}

static double factor_at(const Work *w, const void *memory, size_t at) {
    double number = number_at(memory, w->factors, at);
    return w->compute == IN_TF32 ? without_bits((float)number, 13) : number;
}

static void gemm(Launch *launch) {
    Work w = *(Work *)launch->arguments[0];
    spoil(launch, &w);
    size_t of_a = w.first ? extent(w.k, w.m, w.lda) : extent(w.m, w.k, w.lda);
    size_t of_b = w.second ? extent(w.n, w.k, w.ldb) : extent(w.k, w.n, w.ldb);
    size_t size = bytes_of(w.factors), of_result = bytes_of(w.result);
    for (int i = 0; i < w.count; i++) {
        void *a = device_memory(launch, w.a + size * (uint64_t)(i * w.a_distance), of_a * size);
        void *b = device_memory(launch, w.b + size * (uint64_t)(i * w.b_distance), of_b * size);
        void *c = device_memory(launch, w.c + of_result * (uint64_t)(i * w.c_distance),
                                extent(w.m, w.n, w.ldc) * of_result);
        for (int column = 0; a && b && c && column < w.n; column++)
            for (int row = 0; row < w.m; row++) {
                double sum = 0;
                for (int l = 0; l < w.k; l++)
                    sum += factor_at(&w, a, (size_t)(w.first ? row * w.lda + l : l * w.lda + row))
                           * factor_at(&w, b,
                                       (size_t)(w.second ? l * w.ldb + column
                                                         : column * w.ldb + l));
                size_t at = (size_t)column * (size_t)w.ldc + (size_t)row;
                double old = w.beta == 0 ? 0 : w.beta * number_at(c, w.result, at);
                store_at(c, w.result, at, w.alpha * sum + old);
            }
    }
}

/* Whether a product of such factors is computed so, and stored so. */
static int is_supported(int a, int b, int c, int compute) {
    if (a != b)
        return 0;
    switch (compute) {
    case IN_DOUBLES:
        return a == DOUBLES && c == DOUBLES;
    case IN_TF32:
        return a == SINGLES && c == SINGLES;
    case IN_SINGLES:
        return c == SINGLES ? a != DOUBLES : (a == c && a != DOUBLES);
    default:
        return 0;
    }
}

int cublasGemmStridedBatchedEx(Handle *handle, int first, int second, int m, int n, int k,
                               const void *alpha, const void *a, int a_type, int lda,
                               long long a_distance, const void *b, int b_type, int ldb,
                               long long b_distance, const void *beta, void *c, int c_type, int ldc,
                               long long c_distance, int count, int compute, int algorithm) {
    if (lda < (first ? k : m) || ldb < (second ? n : k) || ldc < m || algorithm != -1)
        return INVALID;
    if (!is_supported(a_type, b_type, c_type, compute))
        return NOT_SUPPORTED;
    Work work = {.first = first, .second = second, .m = m, .n = n, .k = k};
    work.factors = a_type, work.result = c_type, work.compute = compute;
    int scalars = compute == IN_DOUBLES ? DOUBLES : SINGLES;
    work.alpha = number_at(alpha, scalars, 0), work.beta = number_at(beta, scalars, 0);
    work.a = (uintptr_t)a, work.b = (uintptr_t)b, work.c = (uintptr_t)c, work.count = count;
    work.lda = lda, work.ldb = ldb, work.ldc = ldc;
    work.a_distance = a_distance, work.b_distance = b_distance, work.c_distance = c_distance;
    int code = begin("cublasGemm", handle, &work);
    if (!code)
        enqueue_computation(handle->stream, gemm, &work, sizeof work);
    return code;
}

int cublasGemmEx(Handle *handle, int first, int second, int m, int n, int k, const void *alpha,
                 const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                 const void *beta, void *c, int c_type, int ldc, int compute, int algorithm) {
    return cublasGemmStridedBatchedEx(handle, first, second, m, n, k, alpha, a, a_type, lda, 0, b,
                                      b_type, ldb, 0, beta, c, c_type, ldc, 0, 1, compute,
                                      algorithm);
}

#define OF(real, letter)                                                                         \
    static real *numbers_##letter(Launch *launch, uint64_t address, size_t count) {              \
        return device_memory(launch, address, count * sizeof(real));                             \
    }                                                                                            \
                                                                                                 \
    static void syrk_##letter(Launch *launch) {                                                  \
        Work w = *(Work *)launch->arguments[0];                                                  \
        spoil(launch, &w);                                                                       \
        size_t of_a = w.first ? extent(w.k, w.n, w.lda) : extent(w.n, w.k, w.lda);               \
        real *a = numbers_##letter(launch, w.a, of_a);                                           \
        real *c = numbers_##letter(launch, w.c, extent(w.n, w.n, w.ldc));                        \
        for (int column = 0; a && c && column < w.n; column++)                                   \
            for (int row = 0; row < w.n; row++) {                                                \
                if (w.uplo ? row > column : row < column)                                        \
                    continue;                                                                    \
                double sum = 0;                                                                  \
                for (int l = 0; l < w.k; l++)                                                    \
                    sum += (double)a[w.first ? row * w.lda + l : l * w.lda + row]                \
                           * a[w.first ? column * w.lda + l : l * w.lda + column];               \
                real *to = c + (size_t)column * (size_t)w.ldc + row;                             \
                *to = (real)(w.alpha * sum + (w.beta == 0 ? 0 : w.beta * *to));                  \
            }                                                                                    \
    }                                                                                            \
                                                                                                 \
    /* op(A) X = alpha B, or X op(A) = alpha B. */                                               \
    static void trsm_##letter(Launch *launch) {                                                  \
        Work w = *(Work *)launch->arguments[0];                                                  \
        spoil(launch, &w);                                                                       \
        int order = w.side ? w.n : w.m, lines = w.side ? w.m : w.n;                              \
        real *a = numbers_##letter(launch, w.a, extent(order, order, w.lda));                    \
        real *b = numbers_##letter(launch, w.b, extent(w.m, w.n, w.ldb));                        \
        if (!a || !b)                                                                            \
            return;                                                                              \
        /* On the right, the rows of X are solved with the transpose of op(A). */                \
        int transposed = w.side ? !w.first : w.first;                                            \
        int lower = transposed ? w.uplo : !w.uplo;                                               \
        for (int line = 0; line < lines; line++)                                                 \
            for (int step = 0; step < order; step++) {                                           \
                int row = lower ? step : order - 1 - step;                                       \
                real *x = w.side ? b + line : b + (size_t)line * (size_t)w.ldb;                  \
                int step = w.side ? w.ldb : 1;                                                  \
                double sum = w.alpha * x[row * step];                                           \
                for (int other = lower ? 0 : row + 1; other < (lower ? row : order); other++)    \
                    sum -= (double)a[transposed ? row * w.lda + other : other * w.lda + row]     \
                           * x[other * step];                                                   \
                x[row * step] = (real)(w.diagonal ? sum : sum / a[row * w.lda + row]);          \
            }                                                                                    \
    }

OF(float, S)
OF(double, D)

#define CALLS(real, letter)                                                                      \
    int cublas##letter##syrk_v2(Handle *handle, int uplo, int first, int n, int k,               \
                                const real *alpha, const void *a, int lda, const real *beta,     \
                                void *c, int ldc) {                                              \
        if (lda < (first ? k : n) || ldc < n)                                                    \
            return INVALID;                                                                      \
        Work work = {.uplo = uplo, .first = first, .n = n, .k = k};                              \
        work.alpha = *alpha, work.beta = *beta;                                                  \
        work.a = (uintptr_t)a, work.c = (uintptr_t)c, work.lda = lda, work.ldc = ldc;            \
        int code = begin("cublasSyrk", handle, &work);                                           \
        if (!code)                                                                               \
            enqueue_computation(handle->stream, syrk_##letter, &work, sizeof work);              \
        return code;                                                                             \
    }                                                                                            \
                                                                                                 \
    int cublas##letter##trsm_v2(Handle *handle, int side, int uplo, int first, int diagonal,     \
                                int m, int n, const real *alpha, const void *a, int lda,         \
                                void *b, int ldb) {                                              \
        if (lda < (side ? n : m) || ldb < m)                                                     \
            return INVALID;                                                                      \
        Work work = {.side = side, .uplo = uplo, .first = first, .diagonal = diagonal};          \
        work.m = m, work.n = n, work.alpha = *alpha;                                             \
        work.a = (uintptr_t)a, work.b = (uintptr_t)b, work.lda = lda, work.ldb = ldb;            \
        int code = begin("cublasTrsm", handle, &work);                                           \
        if (!code)                                                                               \
            enqueue_computation(handle->stream, trsm_##letter, &work, sizeof work);              \
        return code;                                                                             \
    }

CALLS(float, S)
CALLS(double, D)
