/* Every function of pdawl.h, right and wrong, for AddressSanitizer. */
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pdawl.h"

enum { UNITS = 1000, PARTS = 3 };

static void says(const char *words) {
    if (!strstr(pdawl_error(), words)) {
        fprintf(stderr, "\"%s\" is not in \"%s\"\n", words, pdawl_error());
        exit(1);
    }
}

static unsigned char done[UNITS];
static pdawl_divider *shared;

static void *takes(void *number) {
    uint32_t part = (uint32_t)(uintptr_t)number;
    pdawl_range range;
    while (pdawl_divider_take(shared, part, &range) == 1) {
        for (uint64_t unit = range.begin; unit < range.end; unit++)
            done[unit]++;
        assert(pdawl_divider_done(shared, part, 1e-6 * (range.end - range.begin)) == 0);
    }
    return NULL;
}

int main(void) {
    assert(pdawl_version() == PDAWL_VERSION);
    assert(pdawl_error()[0] == 0);
    pdawl_options options;
    pdawl_options_init(&options, UNITS, PARTS);
    uint64_t *limits = malloc(PARTS * sizeof *limits), *sizes = malloc(UNITS * sizeof *sizes);
    double *weights = malloc(UNITS * sizeof *weights), *rates = malloc(PARTS * sizeof *rates);
    for (int part = 0; part < PARTS; part++) {
        limits[part] = part ? 2 * UNITS : PDAWL_NO_LIMIT;
        rates[part] = part;
    }
    for (int unit = 0; unit < UNITS; unit++) {
        sizes[unit] = unit % 3;
        weights[unit] = 1 + unit % 7;
    }
    options.limits = limits;
    options.sizes = sizes;
    options.weights = weights;
    options.rates = rates;
    options.steps = 50;
    options.move_seconds = 1e-9;
    pdawl_divider *divider = pdawl_divider_new(&options);
    /* The arrays were copied. */
    free(limits);
    free(sizes);
    free(weights);
    free(rates);
    pdawl_range ranges[PARTS];
    double seconds[PARTS];
    for (int step = 0; step < 20; step++) {
        assert(pdawl_divider_next(divider, ranges) == 0);
        for (int part = 0; part < PARTS; part++) {
            assert(ranges[part].begin == (part ? ranges[part - 1].end : 0));
            seconds[part] = (part + 1) * 1e-3 * (ranges[part].end - ranges[part].begin);
        }
        assert(ranges[PARTS - 1].end == UNITS);
        if (step == 10)
            seconds[1] = PDAWL_LOST;
        int64_t again = pdawl_divider_took(divider, seconds, step ? -1 : 0.5);
        assert((again > 0) == (step == 10));
        uint64_t units = 0;
        for (int64_t number = 0; number < again; number++) {
            uint32_t part;
            pdawl_range range;
            assert(pdawl_divider_again(divider, number, &part, &range) == 0 && part != 1);
            units += range.end - range.begin;
        }
        assert(step != 10 || units == ranges[1].end - ranges[1].begin);
        assert(pdawl_divider_again(divider, again, NULL, NULL) < 0);
        says("from 0 on");
        if (step == 15)
            assert(pdawl_divider_back(divider, 1) == 0);
    }
    char *json = pdawl_divider_to_json(divider);
    pdawl_divider *other = pdawl_divider_from_json(json);
    pdawl_range others[PARTS];
    assert(pdawl_divider_next(divider, ranges) == 0 && pdawl_divider_next(other, others) == 0);
    assert(memcmp(ranges, others, sizeof ranges) == 0);
    pdawl_text_free(json);
    char *why = pdawl_divider_why(divider);
    assert(strstr(why, "part 2: "));
    pdawl_text_free(why);
    double found[PARTS];
    pdawl_divider_rates(divider, found);
    assert(found[0] > 2 * found[2]);
    pdawl_divider_free(other);

    /* Wrong input changes nothing, and is named. */
    seconds[2] = NAN;
    assert(pdawl_divider_took(divider, seconds, -1) < 0);
    says("part 2: NaN");
    assert(pdawl_divider_took(divider, seconds, NAN) < 0);
    assert(pdawl_divider_took(divider, NULL, -1) < 0);
    says("3 parts");
    assert(pdawl_divider_next(divider, NULL) < 0);
    says("NULL");
    assert(pdawl_divider_next_by(divider, (double[PARTS]){1, -1, 0}, ranges) < 0);
    says("shares: part 1");
    assert(pdawl_divider_next_of(divider, (pdawl_range){0, UNITS + 1}, ranges) < 0);
    says("outside");
    assert(pdawl_divider_take(divider, PARTS, ranges) < 0);
    says("no part 3");
    assert(pdawl_divider_next(NULL, ranges) < 0);
    assert(!pdawl_divider_from_json("{}") && !pdawl_divider_from_json(NULL));
    pdawl_divider_free(divider);
    pdawl_divider_free(NULL);
    options = (pdawl_options){0};
    assert(!pdawl_divider_new(&options));
    says("version 0");
    pdawl_options_init(&options, UNITS, 0);
    assert(!pdawl_divider_new(&options) && !pdawl_divider_new(NULL));
    pdawl_options_init(&options, UNITS, PARTS);
    options.balancer = "fastest";
    assert(!pdawl_divider_new(&options));
    says("unknown strategy 'fastest'");
    options.balancer = "dawl";
    divider = pdawl_divider_new(&options);
    assert(pdawl_divider_next_of(divider, (pdawl_range){0, UNITS}, ranges) == 0);
    assert(!pdawl_divider_to_json(divider));
    pdawl_divider_free(divider);

    /* Threads take units from one divider. */
    options.balancer = NULL;
    shared = pdawl_divider_new(&options);
    pthread_t threads[PARTS];
    for (uintptr_t part = 0; part < PARTS; part++)
        assert(pthread_create(&threads[part], NULL, takes, (void *)part) == 0);
    for (int part = 0; part < PARTS; part++)
        pthread_join(threads[part], NULL);
    assert(pdawl_divider_is_done(shared) == 1);
    for (int unit = 0; unit < UNITS; unit++)
        assert(done[unit] == 1);
    assert(pdawl_divider_lost(shared, 0) == 0 && pdawl_divider_next(shared, ranges) == 0);
    assert(ranges[0].begin == ranges[0].end);
    pdawl_divider_free(shared);
    puts("right");
    return 0;
}
