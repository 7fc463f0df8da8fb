/* Two threads of OpenMP, of which the second works twice as long on each unit:
 * cc -fopenmp openmp.c $(pkg-config --cflags --libs pdawl) -lm */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "pdawl.h"

enum { UNITS = 200000, PARTS = 2, STEPS = 30 };

int main(void) {
    pdawl_options options;
    pdawl_options_init(&options, UNITS, PARTS);
    pdawl_divider *divider = pdawl_divider_new(&options);
    double *result = malloc(UNITS * sizeof(double));
    if (!divider || !result) {
        fprintf(stderr, "%s\n", pdawl_error());
        return 1;
    }
    pdawl_range parts[PARTS];
    double seconds[PARTS];
    for (int step = 0; step < STEPS; step++) {
        if (pdawl_divider_next(divider, parts) < 0)
            break;
#pragma omp parallel num_threads(PARTS)
        {
            int part = omp_get_thread_num();
            double began = omp_get_wtime();
            for (uint64_t unit = parts[part].begin; unit < parts[part].end; unit++)
                for (int again = 0; again <= part; again++)
                    result[unit] = sin(unit + again * 0.0) * sqrt(unit + step);
            seconds[part] = omp_get_wtime() - began;
        }
        if (pdawl_divider_took(divider, seconds, -1) < 0)
            break;
    }
    char *why = pdawl_divider_why(divider);
    printf("%s\n", why);
    pdawl_text_free(why);
    pdawl_divider_free(divider);
    int wrong = 0;
    for (uint64_t unit = 0; unit < UNITS; unit++)
        wrong += result[unit] != sin(unit) * sqrt(unit + (STEPS - 1));
    free(result);
    printf("%d wrong\n", wrong);
    return wrong > 0;
}
