// 2-D 5-point and 3-D 7-point Jacobi stencils over rings of rows or planes.
// Arguments and order of operations: src/codelet/stencil/mod.rs.
//
// A work-item owns a column of the launch and marches down UNITS_PER_ITEM
// units of it with three of them in registers, so that each point is loaded
// once from beyond the first-level cache; its neighbours along x come from
// there, loaded just before by the neighbours of the same group. Only units
// that exist are read. Rings wrap by a comparison, the grid's borders are
// chosen by selection: the only branch is for the two outermost columns.
//
// REAL and UNITS_PER_ITEM come from src/codelet/stencil/opencl.rs.

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
// No operation may be fused: results agree bit for bit on every device.
#pragma OPENCL FP_CONTRACT OFF

// The place of the ring's slot `base + ahead`, `ahead` < `slots`, in elements.
static inline size_t place(uint base, uint ahead, uint slots, size_t slot_size)
{
    const size_t slot = (size_t)base + ahead;
    return (slot >= slots ? slot - slots : slot) * slot_size;
}

// The next and the previous place on a ring of `end` elements.
static inline size_t next(size_t at, size_t slot_size, size_t end)
{
    const size_t ahead = at + slot_size;
    return ahead == end ? 0 : ahead;
}

static inline size_t previous(size_t at, size_t slot_size, size_t end)
{
    return (at == 0 ? end : at) - slot_size;
}

// A work-item: column x, and the units from UNITS_PER_ITEM * get_global_id(1).
__kernel void stencil5(__global const REAL *restrict from, __global REAL *restrict to,
                       uint from_slot, uint from_slots,
                       uint to_slot, uint to_slots,
                       uint first, uint count, uint units,
                       uint nx, uint ny, REAL weight)
{
    const size_t x = get_global_id(0);
    const uint begin = (uint)get_global_id(1) * UNITS_PER_ITEM;
    if (x >= nx)
        return;
    const uint unit = first + begin;
    const uint rows = min((uint)UNITS_PER_ITEM, count - begin);
    // Rows below the first that exist, and are needed.
    const uint below = min(rows, units - 1 - unit);
    const bool inside = x > 0 && x + 1 < nx;

    const size_t from_end = (size_t)from_slots * nx;
    const size_t to_end = (size_t)to_slots * nx;
    size_t target = place(to_slot, begin, to_slots, nx);
    size_t row = place(from_slot, begin, from_slots, nx);
    REAL centre = from[row + x];
    REAL north = from[(unit == 0 ? row : previous(row, nx, from_end)) + x];

#pragma unroll
    for (uint r = 0; r < UNITS_PER_ITEM; r++) {
        const size_t row_below = r < below ? next(row, nx, from_end) : row;
        const REAL south = from[row_below + x];
        REAL value = centre;
        if (inside) {
            const REAL sum = (north + south) + (from[row + x - 1] + from[row + x + 1]);
            const bool border = unit + r == 0 || unit + r + 1 >= units;
            value = border ? centre : (sum + centre) * weight;
        }
        if (r < rows)
            to[target + x] = value;
        north = centre;
        centre = south;
        row = row_below;
        target = next(target, nx, to_end);
    }
}

// A work-item: column (x, y), and the planes from UNITS_PER_ITEM * get_global_id(2).
__kernel void stencil7(__global const REAL *restrict from, __global REAL *restrict to,
                       uint from_slot, uint from_slots,
                       uint to_slot, uint to_slots,
                       uint first, uint count, uint units,
                       uint nx, uint ny, REAL weight)
{
    const size_t x = get_global_id(0);
    const size_t y = get_global_id(1);
    const uint begin = (uint)get_global_id(2) * UNITS_PER_ITEM;
    if (x >= nx || y >= ny)
        return;
    const uint unit = first + begin;
    const uint planes = min((uint)UNITS_PER_ITEM, count - begin);
    const uint over = min(planes, units - 1 - unit);
    const bool inside = x > 0 && x + 1 < nx && y > 0 && y + 1 < ny;

    const size_t size = (size_t)nx * ny;
    const size_t at = y * nx + x;
    const size_t from_end = from_slots * size;
    const size_t to_end = to_slots * size;
    size_t target = place(to_slot, begin, to_slots, size);
    size_t plane = place(from_slot, begin, from_slots, size);
    REAL centre = from[plane + at];
    REAL below = from[(unit == 0 ? plane : previous(plane, size, from_end)) + at];

#pragma unroll
    for (uint p = 0; p < UNITS_PER_ITEM; p++) {
        const size_t plane_above = p < over ? next(plane, size, from_end) : plane;
        const REAL above = from[plane_above + at];
        REAL value = centre;
        if (inside) {
            __global const REAL *here = from + plane + at;
            const REAL around = (here[-(long)nx] + here[nx]) + (here[-1] + here[1]);
            const bool border = unit + p == 0 || unit + p + 1 >= units;
            value = border ? centre : (around + ((below + above) + centre)) * weight;
        }
        if (p < planes)
            to[target + at] = value;
        below = centre;
        centre = above;
        plane = plane_above;
        target = next(target, size, to_end);
    }
}
