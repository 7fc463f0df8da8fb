/* A product of square matrices of singles by ScaLAPACK's psgemm.
 *
 *     scalapack SIZE BLOCK all|worker
 *
 * Ranks form the most square grid, and blocks are dealt to it in both directions. With `worker`
 * the calls of BLAS' sgemm are on the limited thread. */
#include "peer.h"
#include <dlfcn.h>
#include <math.h>

extern void Cblacs_get(int, int, int *);
extern void Cblacs_gridinit(int *, char *, int, int);
extern void Cblacs_gridinfo(int, int *, int *, int *, int *);
extern int numroc_(int *, int *, int *, int *, int *);
extern void descinit_(int *, int *, int *, int *, int *, int *, int *, int *, int *, int *);
extern void psgemm_(char *, char *, int *, int *, int *, float *, float *, int *, int *, int *, float *, int *,
                    int *, int *, float *, float *, int *, int *, int *);

typedef void Gemm(char *, char *, int *, int *, int *, float *, float *, int *, float *, int *, float *, float *, int *);
struct call {
    char *ta, *tb;
    int *m, *n, *k, *lda, *ldb, *ldc;
    float *alpha, *a, *b, *beta, *c;
};

static void call_gemm(void *of) {
    static Gemm *gemm;
    struct call *x = of;
    if (!gemm)
        gemm = (Gemm *)dlsym(RTLD_NEXT, "sgemm_");
    gemm(x->ta, x->tb, x->m, x->n, x->k, x->alpha, x->a, x->lda, x->b, x->ldb, x->beta, x->c, x->ldc);
}

/* ScaLAPACK calls this one instead of the library's. */
void sgemm_(char *ta, char *tb, int *m, int *n, int *k, float *alpha, float *a, int *lda, float *b, int *ldb,
            float *beta, float *c, int *ldc) {
    struct call call = {ta, tb, m, n, k, lda, ldb, ldc, alpha, a, b, beta, c};
    compute(call_gemm, &call);
}

/* The place in the matrix of a local row or column. */
static int place(int local, int block, int me, int count) {
    return (local / block * count + me) * block + local % block;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    int n = atoi(argv[1]), block = atoi(argv[2]), ranks, context, rows = 1, columns, row, column;
    int zero = 0, one = 1, info, of[9];
    start(&argc, &argv, argv[3]);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int r = 1; r * r <= ranks; r++)
        if (ranks % r == 0)
            rows = r;
    columns = ranks / rows;
    Cblacs_get(0, 0, &context);
    Cblacs_gridinit(&context, "Row", rows, columns);
    Cblacs_gridinfo(context, &rows, &columns, &row, &column);
    int high = numroc_(&n, &block, &row, &zero, &rows), wide = numroc_(&n, &block, &column, &zero, &columns);
    descinit_(of, &n, &n, &block, &block, &zero, &zero, &context, &high, &info);
    size_t all = (size_t)high * wide;
    float *a = malloc(4 * all), *b = malloc(4 * all), *c = calloc(all, 4), alpha = 1, beta = 0;
    for (int j = 0; j < wide; j++)
        for (int i = 0; i < high; i++) {
            int gi = place(i, block, row, rows), gj = place(j, block, column, columns);
            a[i + (size_t)j * high] = number(gi, gj, 1);
            b[i + (size_t)j * high] = number(gi, gj, 2);
            c[i + (size_t)j * high] = -1;
        }
    double begin = limit();
    psgemm_("N", "N", &n, &n, &n, &alpha, a, &one, &one, of, b, &one, &one, of, &beta, c, &one, &one, of);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - begin, error = 0;
    for (int sample = 0; sample < 20; sample++) {
        int i = (int)(sample * 7919L % high), j = (int)(sample * 104729L % wide);
        int gi = place(i, block, row, rows), gj = place(j, block, column, columns);
        double sum = 0;
        for (int k = 0; k < n; k++)
            sum += (double)number(gi, k, 1) * number(k, gj, 2);
        error = fmax(error, fabs(sum - c[i + (size_t)j * high]) / sqrt(n));
    }
    finish(seconds, error);
    return 0;
}
