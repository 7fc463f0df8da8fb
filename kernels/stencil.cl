// 2-D 5-point and 3-D 7-point Jacobi stencils over ring buffers of rows or planes.
// src/codelet/stencil/mod.rs describes the arguments and the order of operations.
//
// A work-item computes UNITS_PER_ITEM units of one column. It first loads these
// units and one more on each side into registers, so that many loads are in
// flight. Neighbours along x were loaded by the same work-group and are in the L1
// cache. The kernel reads only units that exist. Ring indices wrap with a
// comparison and borders use a selection, so that only the outermost columns
// cause divergent branches.
//
// `from` and `to` may be the same buffer: `restrict` still holds, since the slots
// read and the slots written differ.
//
// src/codelet/stencil/opencl.rs defines REAL and UNITS_PER_ITEM, and WEIGHTED for the
// rule with a coefficient for each point; without it the rule is the mean. With CELL, an
// unsigned integer as wide as REAL, AS_CELL and GROUP_ITEMS, the kernels also find the largest
// change of a point.

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
// Operations must not be fused, so that results are bit-identical on all devices.
#pragma OPENCL FP_CONTRACT OFF

// Offset in elements of the ring's slot `base + ahead`, for `ahead` < `slots`.
static inline size_t offset(uint base, uint ahead, uint slots, size_t slot_size)
{
    const size_t slot = (size_t)base + ahead;
    return (slot >= slots ? slot - slots : slot) * slot_size;
}

// Offsets of the next and the previous slot in a ring of `end` elements.
static inline size_t next(size_t at, size_t slot_size, size_t end)
{
    const size_t ahead = at + slot_size;
    return ahead == end ? 0 : ahead;
}

static inline size_t previous(size_t at, size_t slot_size, size_t end)
{
    return (at == 0 ? end : at) - slot_size;
}

// The rule: its numbers as the kernel's arguments, those numbers, and the next version of a
// point from its present neighbourhood.
#ifdef WEIGHTED
#define RULE5 REAL of_centre, REAL of_north, REAL of_south, REAL of_west, REAL of_east
#define RULE7 RULE5, REAL of_below, REAL of_above
#define NUMBERS5 of_centre, of_north, of_south, of_west, of_east
#define NUMBERS7 NUMBERS5, of_below, of_above
#define CROSS(north, south, west, east) \
    (((north) * of_north + (south) * of_south) + ((west) * of_west + (east) * of_east))
#define NEXT5(centre, north, south, west, east) \
    (CROSS(north, south, west, east) + (centre) * of_centre)
#define NEXT7(centre, north, south, west, east, below, above) \
    ((CROSS(north, south, west, east) + ((below) * of_below + (above) * of_above)) \
     + (centre) * of_centre)
#else
#define RULE5 REAL weight
#define RULE7 RULE5
#define NUMBERS5 weight
#define NUMBERS7 NUMBERS5
#define CROSS(north, south, west, east) (((north) + (south)) + ((west) + (east)))
#define NEXT5(centre, north, south, west, east) \
    ((CROSS(north, south, west, east) + (centre)) * weight)
#define NEXT7(centre, north, south, west, east, below, above) \
    ((CROSS(north, south, west, east) + (((below) + (above)) + (centre))) * weight)
#endif

// The largest change of a work-item's points, as the bits of a number without a sign: those of
// NaN are above all others. Without CELL it is nothing.
#ifdef CELL
#define CHANGE CELL
#define NO_CHANGE ((CELL)0)
#define RAISE(most, counts, value, centre)                        \
    if (counts)                                                   \
        most = max(most, AS_CELL(fabs((value) - (centre))))
#define CHANGES_ARGUMENT , __global CELL *restrict changes
// Work-items of a group that look at those of the others, each at as many.
#define FINDERS 16

// The largest of all work-items of a group, for the first one. A tree would need a barrier for
// each halving.
static inline CELL find_largest(CELL most, size_t item, __local CELL *of_items)
{
    of_items[item] = most;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < FINDERS) {
        for (size_t other = item + FINDERS; other < GROUP_ITEMS; other += FINDERS)
            most = max(most, of_items[other]);
        of_items[item] = most;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        for (size_t other = 1; other < FINDERS; other++)
            most = max(most, of_items[other]);
    }
    return most;
}

// Raises the group's cell to the largest change of all of its work-items.
static inline void keep_change(CELL most, __local CELL *of_items, __global CELL *restrict changes)
{
    const size_t item = get_local_id(0)
        + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2));
    most = find_largest(most, item, of_items);
    if (item == 0) {
        const size_t group = get_group_id(0)
            + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2));
        changes[group] = max(changes[group], most);
    }
}

// Each group finds the largest of its part of the cells, which are zero afterwards, and sets
// a cell of `largest` to it if this is the `first` part, or else raises it.
__kernel void fold_changes(__global CELL *restrict cells, __global CELL *restrict largest,
                           uint count, uint first)
{
    __local CELL of_items[GROUP_ITEMS];
    CELL most = NO_CHANGE;
    for (size_t cell = get_global_id(0); cell < count; cell += get_global_size(0)) {
        most = max(most, cells[cell]);
        cells[cell] = NO_CHANGE;
    }
    most = find_largest(most, get_local_id(0), of_items);
    if (get_local_id(0) == 0) {
        __global CELL *of_group = largest + get_group_id(0);
        *of_group = first ? most : max(*of_group, most);
    }
}
#else
#define CHANGE int
#define NO_CHANGE 0
#define RAISE(most, counts, value, centre)
#define CHANGES_ARGUMENT
#endif

// A work-item computes column x of the rows from UNITS_PER_ITEM * get_global_id(1).
static inline CHANGE column5(__global const REAL *restrict from, __global REAL *restrict to,
                             uint from_slot, uint from_slots,
                             uint to_slot, uint to_slots,
                             uint first, uint count, uint units,
                             uint nx, RULE5)
{
    const size_t x = get_global_id(0);
    const uint begin = (uint)get_global_id(1) * UNITS_PER_ITEM;
    if (x >= nx)
        return NO_CHANGE;
    const uint unit = first + begin;
    const uint rows = min((uint)UNITS_PER_ITEM, count - begin);
    // Number of required rows below the first that exist.
    const uint below = min(rows, units - 1 - unit);
    const bool inside = x > 0 && x + 1 < nx;

    const size_t from_end = (size_t)from_slots * nx;
    const size_t to_end = (size_t)to_slots * nx;
    size_t row[UNITS_PER_ITEM + 2];
    row[1] = offset(from_slot, begin, from_slots, nx);
    row[0] = unit == 0 ? row[1] : previous(row[1], nx, from_end);
#pragma unroll
    for (uint r = 0; r < UNITS_PER_ITEM; r++)
        row[r + 2] = r < below ? next(row[r + 1], nx, from_end) : row[r + 1];

    REAL column[UNITS_PER_ITEM + 2];
#pragma unroll
    for (uint r = 0; r < UNITS_PER_ITEM + 2; r++)
        column[r] = from[row[r] + x];

    CHANGE most = NO_CHANGE;
    size_t target = offset(to_slot, begin, to_slots, nx);
#pragma unroll
    for (uint r = 0; r < UNITS_PER_ITEM; r++) {
        const REAL centre = column[r + 1];
        REAL value = centre;
        if (inside) {
            __global const REAL *here = from + row[r + 1] + x;
            const REAL later = NEXT5(centre, column[r], column[r + 2], here[-1], here[1]);
            const bool border = unit + r == 0 || unit + r + 1 >= units;
            value = border ? centre : later;
            RAISE(most, r < rows && !border, later, centre);
        }
        if (r < rows)
            to[target + x] = value;
        target = next(target, nx, to_end);
    }
    return most;
}

__kernel void stencil5(__global const REAL *restrict from, __global REAL *restrict to,
                       uint from_slot, uint from_slots,
                       uint to_slot, uint to_slots,
                       uint first, uint count, uint units,
                       uint nx, uint ny, RULE5 CHANGES_ARGUMENT)
{
#ifdef CELL
    __local CELL of_items[GROUP_ITEMS];
    const CELL most =
#endif
    column5(from, to, from_slot, from_slots, to_slot, to_slots,
            first, count, units, nx, NUMBERS5);
#ifdef CELL
    keep_change(most, of_items, changes);
#endif
}

// A work-item computes column (x, y) of the planes from
// UNITS_PER_ITEM * get_global_id(2).
static inline CHANGE column7(__global const REAL *restrict from, __global REAL *restrict to,
                             uint from_slot, uint from_slots,
                             uint to_slot, uint to_slots,
                             uint first, uint count, uint units,
                             uint nx, uint ny, RULE7)
{
    const size_t x = get_global_id(0);
    const size_t y = get_global_id(1);
    const uint begin = (uint)get_global_id(2) * UNITS_PER_ITEM;
    if (x >= nx || y >= ny)
        return NO_CHANGE;
    const uint unit = first + begin;
    const uint planes = min((uint)UNITS_PER_ITEM, count - begin);
    const uint over = min(planes, units - 1 - unit);
    const bool inside = x > 0 && x + 1 < nx && y > 0 && y + 1 < ny;

    const size_t size = (size_t)nx * ny;
    const size_t at = y * nx + x;
    const size_t from_end = from_slots * size;
    const size_t to_end = to_slots * size;
    size_t plane[UNITS_PER_ITEM + 2];
    plane[1] = offset(from_slot, begin, from_slots, size);
    plane[0] = unit == 0 ? plane[1] : previous(plane[1], size, from_end);
#pragma unroll
    for (uint p = 0; p < UNITS_PER_ITEM; p++)
        plane[p + 2] = p < over ? next(plane[p + 1], size, from_end) : plane[p + 1];

    REAL column[UNITS_PER_ITEM + 2];
#pragma unroll
    for (uint p = 0; p < UNITS_PER_ITEM + 2; p++)
        column[p] = from[plane[p] + at];

    CHANGE most = NO_CHANGE;
    size_t target = offset(to_slot, begin, to_slots, size);
#pragma unroll
    for (uint p = 0; p < UNITS_PER_ITEM; p++) {
        const REAL centre = column[p + 1];
        REAL value = centre;
        if (inside) {
            __global const REAL *here = from + plane[p + 1] + at;
            const REAL later = NEXT7(centre, here[-(long)nx], here[nx], here[-1], here[1],
                                     column[p], column[p + 2]);
            const bool border = unit + p == 0 || unit + p + 1 >= units;
            value = border ? centre : later;
            RAISE(most, p < planes && !border, later, centre);
        }
        if (p < planes)
            to[target + at] = value;
        target = next(target, size, to_end);
    }
    return most;
}

__kernel void stencil7(__global const REAL *restrict from, __global REAL *restrict to,
                       uint from_slot, uint from_slots,
                       uint to_slot, uint to_slots,
                       uint first, uint count, uint units,
                       uint nx, uint ny, RULE7 CHANGES_ARGUMENT)
{
#ifdef CELL
    __local CELL of_items[GROUP_ITEMS];
    const CELL most =
#endif
    column7(from, to, from_slot, from_slots, to_slot, to_slots,
            first, count, units, nx, ny, NUMBERS7);
#ifdef CELL
    keep_change(most, of_items, changes);
#endif
}
