/* A 2-D Fourier transform of complex singles by FFTW-MPI.
 *
 *     fftw SIZE all|worker
 *
 * The result is transposed, which spares a second exchange. With `all` it is one plan of
 * FFTW-MPI's. With `worker` the same steps are called one by one: the transforms of rows and of
 * columns on the limited thread, and FFTW-MPI's transposition between them. */
#include "peer.h"
#include <complex.h>
#include <fftw3-mpi.h>
#include <math.h>

static void transform(void *plan) { fftwf_execute((fftwf_plan)plan); }

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    ptrdiff_t n = atol(argv[1]), rows, first, columns, first_column;
    start(&argc, &argv, argv[2]);
    fftwf_mpi_init();
    ptrdiff_t all = fftwf_mpi_local_size_2d_transposed(n, n, MPI_COMM_WORLD, &rows, &first, &columns, &first_column);
    fftwf_complex *data = fftwf_alloc_complex(all);
    fftwf_plan whole = NULL, of_rows = NULL, turn = NULL, of_columns = NULL;
    int length = (int)n;
    if (has_worker) {
        of_rows = fftwf_plan_many_dft(1, &length, (int)rows, data, NULL, 1, length, data, NULL, 1, length,
                                      FFTW_FORWARD, FFTW_MEASURE);
        turn = fftwf_mpi_plan_many_transpose(n, n, 2, FFTW_MPI_DEFAULT_BLOCK, FFTW_MPI_DEFAULT_BLOCK, (float *)data,
                                             (float *)data, MPI_COMM_WORLD, FFTW_MEASURE);
        of_columns = fftwf_plan_many_dft(1, &length, (int)columns, data, NULL, 1, length, data, NULL, 1, length,
                                         FFTW_FORWARD, FFTW_MEASURE);
    } else {
        whole = fftwf_mpi_plan_dft_2d(n, n, data, data, MPI_COMM_WORLD, FFTW_FORWARD,
                                      FFTW_MEASURE | FFTW_MPI_TRANSPOSED_OUT);
    }
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t j = 0; j < n; j++)
            data[i * n + j] = number(first + i, j, 1) + I * number(first + i, j, 2);
    double begin = limit();
    if (has_worker) {
        compute(transform, of_rows);
        fftwf_execute(turn);
        compute(transform, of_columns);
    } else {
        fftwf_execute(whole);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - begin, error = 0;
    /* One number of each rank, from the definition. */
    ptrdiff_t row = 5 % n, column = first_column + columns / 3;
    double complex sum = 0, *turned = malloc(n * sizeof *turned);
    for (ptrdiff_t i = 0; i < n; i++)
        turned[i] = cexp(-2 * M_PI * I * i / n);
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < n; j++)
            sum += (number(i, j, 1) + I * number(i, j, 2)) * turned[(i * row + j * column) % n];
    error = cabs(sum - data[(column - first_column) * n + row]) / n;
    finish(seconds, error);
    return 0;
}
