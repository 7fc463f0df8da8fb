// Work-items: their numbers, barriers, and local memory as arguments.

namespace opencl {

// The registers are those of NVIDIA's OpenCL (src/hardware/runtime/cuda/ptx). CUDA's driver does not
// know them: pdawl makes parameters of them.
template <int REGISTER> __forceinline__ uint environment();
#define PDAWL_REGISTER(number)                                     \
    template <> __forceinline__ uint environment<number>()         \
    {                                                              \
        uint value;                                                \
        asm("mov.u32 %0, %%envreg" #number ";" : "=r"(value));     \
        return value;                                              \
    }
PDAWL_REGISTER(0)
PDAWL_REGISTER(1)
PDAWL_REGISTER(2)
PDAWL_REGISTER(3)
PDAWL_REGISTER(4)
PDAWL_REGISTER(5)
PDAWL_REGISTER(6)
PDAWL_REGISTER(7)
PDAWL_REGISTER(8)
#undef PDAWL_REGISTER

#define PDAWL_BY_AXIS(d, x, y, z, other) \
    ((d) == 0 ? (x) : (d) == 1 ? (y) : (d) == 2 ? (z) : (other))

__forceinline__ size_t get_local_id(uint d)
{
    return PDAWL_BY_AXIS(d, threadIdx.x, threadIdx.y, threadIdx.z, 0u);
}

__forceinline__ size_t get_local_size(uint d)
{
    return PDAWL_BY_AXIS(d, blockDim.x, blockDim.y, blockDim.z, 1u);
}

__forceinline__ size_t get_enqueued_local_size(uint d)
{
    return get_local_size(d);
}

__forceinline__ size_t get_group_id(uint d)
{
    return PDAWL_BY_AXIS(d, blockIdx.x + environment<0>(), blockIdx.y + environment<1>(),
                         blockIdx.z + environment<2>(), 0u);
}

__forceinline__ size_t get_num_groups(uint d)
{
    return PDAWL_BY_AXIS(d, environment<6>(), environment<7>(), environment<8>(), 1u);
}

__forceinline__ size_t get_global_id(uint d)
{
    return PDAWL_BY_AXIS(d, environment<3>() + blockIdx.x * blockDim.x + threadIdx.x,
                         environment<4>() + blockIdx.y * blockDim.y + threadIdx.y,
                         environment<5>() + blockIdx.z * blockDim.z + threadIdx.z, 0u);
}

__forceinline__ size_t get_global_size(uint d)
{
    return get_num_groups(d) * get_local_size(d);
}

// The offset in the register counts the groups before this launch.
__forceinline__ size_t get_global_offset(uint d)
{
    return PDAWL_BY_AXIS(d, environment<3>() - environment<0>() * blockDim.x,
                         environment<4>() - environment<1>() * blockDim.y,
                         environment<5>() - environment<2>() * blockDim.z, 0u);
}

__forceinline__ size_t get_local_linear_id()
{
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

__forceinline__ size_t get_global_linear_id()
{
    return ((get_global_id(2) - get_global_offset(2)) * get_global_size(1)
            + get_global_id(1) - get_global_offset(1)) * get_global_size(0)
        + get_global_id(0) - get_global_offset(0);
}
#undef PDAWL_BY_AXIS

#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
typedef uint cl_mem_fence_flags;

// CUDA's barrier orders accesses to all memory within a group.
__forceinline__ void barrier(cl_mem_fence_flags) { __syncthreads(); }
__forceinline__ void work_group_barrier(cl_mem_fence_flags) { __syncthreads(); }

__forceinline__ void mem_fence(cl_mem_fence_flags flags)
{
    if (flags & CLK_GLOBAL_MEM_FENCE)
        __threadfence();
    else
        __threadfence_block();
}
__forceinline__ void read_mem_fence(cl_mem_fence_flags flags) { mem_fence(flags); }
__forceinline__ void write_mem_fence(cl_mem_fence_flags flags) { mem_fence(flags); }

// An argument in local memory: an offset, to which the translated kernel adds the address of
// dynamic shared memory. No value has this size, so that pdawl finds it in the PTX.
struct alignas(256) local_argument {
    size_t address;
    char rest[248];
    template <class T> __forceinline__ operator T *() const
    {
        return (T *)__cvta_shared_to_generic(address);
    }
};
#define PDAWL_LOCAL_ARGUMENT(name) opencl::local_argument pdawl_##name
#define PDAWL_LOCAL_POINTER(name, ...) __VA_ARGS__ name = pdawl_##name;

// The address of local memory as PTX's instructions for shared memory take it.
template <class T> __forceinline__ uint pdawl_shared_address(T *pointer)
{
    return (uint)__cvta_generic_to_shared((const void *)pointer);
}
#define PDAWL_SHARED_ADDRESS(pointer) pdawl_shared_address(pointer)

} // namespace opencl
