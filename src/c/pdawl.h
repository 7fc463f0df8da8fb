/* pdawl.h: divides the units of a loop among parts (threads, processes, devices, nodes) so that all
 * end together, and corrects that by what each step took.
 *
 *     pdawl_options options;
 *     pdawl_options_init(&options, 1000000, 4);
 *     pdawl_divider *divider = pdawl_divider_new(&options);
 *     pdawl_range parts[4];
 *     double seconds[4];
 *     for (int step = 0; step < 100; step++) {
 *         pdawl_divider_next(divider, parts);
 *         ... part i computes parts[i].begin to parts[i].end, in seconds[i] ...
 *         pdawl_divider_took(divider, seconds, -1);
 *     }
 *     pdawl_divider_free(divider);
 *
 * Compile with `cc program.c $(pkg-config --cflags --libs pdawl)`. Functions that can fail return a
 * negative number or NULL, and pdawl_error() says why. A divider may be called by several threads:
 * each call is done as a whole. */
#ifndef PDAWL_H
#define PDAWL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A library of another one refuses options made with this header. */
#define PDAWL_VERSION 1
/* In place of seconds: the part is lost. */
#define PDAWL_LOST (-1.0)
/* In place of a limit: there is none. */
#define PDAWL_NO_LIMIT UINT64_MAX

typedef struct pdawl_divider pdawl_divider;

/* Units from begin on, without end. */
typedef struct {
    uint64_t begin, end;
} pdawl_range;

/* What is divided. pdawl_options_init sets all members. Arrays may be NULL; the divider copies them. */
typedef struct {
    uint32_t version;
    uint32_t parts;
    uint64_t units;
    uint64_t granularity;   /* ranges begin at multiples of it; 1 */
    const uint64_t *limits; /* most units of each part, or most of their sizes */
    const double *weights;  /* the work of each unit, in any scale */
    const uint64_t *sizes;  /* what each unit takes of a limit */
    const double *rates;    /* how fast the parts are thought to be, in any scale; 0: unknown */
    uint64_t steps;         /* steps in all; 0: unknown */
    double move_seconds;    /* seconds to move a unit from part to part; negative: learned */
    double hysteresis;      /* the part of a step by which other ranges must shorten it; 0.01 */
    const char *balancer;   /* NULL: the divider's own; "dawl", "guided" (HGuided), "fixed:0.3,0.7" */
} pdawl_options;

/* The version of the library. */
uint32_t pdawl_version(void);
/* What was wrong with this thread's last call that failed; "" if there was none. It is valid until
 * the thread's next call that fails. */
const char *pdawl_error(void);

void pdawl_options_init(pdawl_options *options, uint64_t units, uint32_t parts);
/* NULL where an option is wrong. */
pdawl_divider *pdawl_divider_new(const pdawl_options *options);
void pdawl_divider_free(pdawl_divider *divider);

/* The ranges of the next step, one a part, together all units: `ranges` has room for all parts. 0,
 * or -1 where all parts are lost or limits leave no room. */
int pdawl_divider_next(pdawl_divider *divider, pdawl_range *ranges);
/* The same of some of the units: those of a part of another divider. */
int pdawl_divider_next_of(pdawl_divider *divider, pdawl_range units, pdawl_range *ranges);
/* The same by shares that the program has chosen, in any scale. */
int pdawl_divider_next_by(pdawl_divider *divider, const double *shares, pdawl_range *ranges);
/* The step has ended: the seconds of each part, without those in which it waited, or PDAWL_LOST;
 * and the seconds before it in which units moved, or a negative number where they are unknown.
 * The number of ranges that lost parts had and others compute now, or -1. */
int64_t pdawl_divider_took(pdawl_divider *divider, const double *seconds, double moving);
/* The range of that number, from 0 on, and the part that computes it. 0, or -1. */
int pdawl_divider_again(pdawl_divider *divider, uint64_t number, uint32_t *part, pdawl_range *range);

/* Without barriers: the units that a free part computes next. 1; 0 where there is nothing for it,
 * so that it is needed again only if another part is lost; or -1. */
int pdawl_divider_take(pdawl_divider *divider, uint32_t part, pdawl_range *range);
/* It has computed them, in so many seconds. 0, or -1. */
int pdawl_divider_done(pdawl_divider *divider, uint32_t part, double seconds);
/* Whether all units are computed: 1 or 0. pdawl_divider_next begins the next step then. */
int pdawl_divider_is_done(pdawl_divider *divider);

/* A part is lost, or back. 0, or -1. */
int pdawl_divider_lost(pdawl_divider *divider, uint32_t part);
int pdawl_divider_back(pdawl_divider *divider, uint32_t part);

/* Units of work a second of each part; 0 where nothing is known. */
void pdawl_divider_rates(pdawl_divider *divider, double *rates);
/* Why the parts have the ranges that they have, and the state as JSON: texts that pdawl_text_free
 * frees. NULL where a divider is not written. */
char *pdawl_divider_why(pdawl_divider *divider);
char *pdawl_divider_to_json(pdawl_divider *divider);
/* NULL where the text is no state of a divider. */
pdawl_divider *pdawl_divider_from_json(const char *text);
void pdawl_text_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
