// Sums over a part of a vector, by slots. src/codelet/sums/mod.rs describes the arguments.
//
// A work-group sums a slot: each work-item some of its numbers, then all together.
//
// src/codelet/sums/opencl.rs defines REAL, GROUP (the size of a work-group, a power of two)
// and SLOTS.

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// Writes the sums of all work-items' values for the slot of the group.
static inline void put(REAL one, REAL other, __local REAL *ones, __local REAL *others,
                       __global REAL *sums)
{
    const uint item = get_local_id(0);
    ones[item] = one;
    others[item] = other;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint apart = GROUP / 2; apart > 0; apart /= 2) {
        if (item < apart) {
            ones[item] += ones[item + apart];
            others[item] += others[item + apart];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        sums[get_group_id(0)] = ones[0];
        sums[SLOTS + get_group_id(0)] = others[0];
    }
}

// Where the slice of a slot begins.
static inline uint begin_of(uint slot, uint count)
{
    return (uint)((ulong)count * slot / SLOTS);
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void sum_of_squares(__global const REAL *restrict new_ones, __global REAL *restrict sums,
                    uint count)
{
    __local REAL ones[GROUP], others[GROUP];
    const uint slot = get_group_id(0);
    const uint end = begin_of(slot + 1, count);
    REAL sum = 0;
    for (uint at = begin_of(slot, count) + get_local_id(0); at < end; at += GROUP)
        sum += new_ones[at] * new_ones[at];
    put(sum, 0, ones, others, sums);
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void sum_of_ranks(__global const REAL *restrict new_ones, __global const REAL *restrict old_ones,
                  __global const REAL *restrict weights, __global REAL *restrict sums, uint count)
{
    __local REAL ones[GROUP], others[GROUP];
    const uint slot = get_group_id(0);
    const uint end = begin_of(slot + 1, count);
    REAL sum = 0, change = 0;
    for (uint at = begin_of(slot, count) + get_local_id(0); at < end; at += GROUP) {
        sum += weights[at] * new_ones[at];
        change += fabs(new_ones[at] - old_ones[at]);
    }
    put(sum, change, ones, others, sums);
}
