// 2-D 5-point and 3-D 7-point Jacobi stencils over rings of rows or planes.
// Arguments and order of operations: src/codelet/stencil/mod.rs.

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF

static inline size_t slot(uint base, uint ahead, uint slots)
{
    uint s = base + ahead;
    return s >= slots ? s - slots : s;
}

__kernel void stencil5(__global const REAL *from, __global REAL *to,
                       uint from_slot, uint from_slots,
                       uint to_slot, uint to_slots,
                       uint first, uint count, uint units,
                       uint nx, uint ny, REAL weight)
{
    const uint x = get_global_id(0);
    const uint i = get_global_id(1);
    if (x >= nx || i >= count)
        return;
    const uint unit = first + i;
    __global const REAL *row = from + slot(from_slot, i, from_slots) * nx;
    REAL value = row[x];
    if (unit > 0 && unit + 1 < units && x > 0 && x + 1 < nx) {
        const REAL north = from[slot(from_slot, i + from_slots - 1, from_slots) % from_slots * nx + x];
        const REAL south = from[slot(from_slot, i + 1, from_slots) * nx + x];
        value = (((north + south) + (row[x - 1] + row[x + 1])) + value) * weight;
    }
    to[slot(to_slot, i, to_slots) * nx + x] = value;
}

__kernel void stencil7(__global const REAL *from, __global REAL *to,
                       uint from_slot, uint from_slots,
                       uint to_slot, uint to_slots,
                       uint first, uint count, uint units,
                       uint nx, uint ny, REAL weight)
{
    const uint x = get_global_id(0);
    const uint y = get_global_id(1);
    const uint i = get_global_id(2);
    if (x >= nx || y >= ny || i >= count)
        return;
    const uint unit = first + i;
    const size_t plane = (size_t)nx * ny;
    const size_t at = (size_t)y * nx + x;
    __global const REAL *here = from + slot(from_slot, i, from_slots) * plane + at;
    REAL value = *here;
    if (unit > 0 && unit + 1 < units && y > 0 && y + 1 < ny && x > 0 && x + 1 < nx) {
        const REAL below = from[slot(from_slot, i + from_slots - 1, from_slots) % from_slots * plane + at];
        const REAL above = from[slot(from_slot, i + 1, from_slots) * plane + at];
        value = (((here[-(long)nx] + here[nx]) + (here[-1] + here[1])) + ((below + above) + value)) * weight;
    }
    to[slot(to_slot, i, to_slots) * plane + at] = value;
}
