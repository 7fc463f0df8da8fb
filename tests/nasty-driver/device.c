/* The platform, its devices, parts of these, and contexts. */
#include "nasty.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct _cl_platform_id platform = {{&nasty_table, PLATFORM, 1, 0}};
cl_device_type type = CL_DEVICE_TYPE_GPU;

static cl_uint count;
static struct _cl_device_id devices[MOST];

static void open_all(void) {
    open_pocl();
    const char *number = getenv("NASTY_DEVICES"), *kind = getenv("NASTY_TYPE");
    count = number ? atoi(number) : 2;
    if (count < 1 || count > MOST)
        complain("NASTY_DEVICES is %s, and may be 1 to %d", number, MOST);
    if (kind && strcmp(kind, "cpu") == 0)
        type = CL_DEVICE_TYPE_CPU;
    cl_uint units = 1;
    pocl->clGetDeviceInfo(pocl_device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    for (cl_uint i = 0; i < count; i++)
        devices[i] = (struct _cl_device_id){{&nasty_table, DEVICE, 1, 0}, NULL, i, units, {0}};
    start_notifier();
    atexit(end_driver);
}

void open_platform(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_all);
}

__attribute__((visibility("default"))) cl_int clIcdGetPlatformIDsKHR(cl_uint entries, cl_platform_id *platforms,
                                                                     cl_uint *number) {
    open_platform();
    if (platforms && entries)
        *platforms = &platform;
    if (number)
        *number = 1;
    return CL_SUCCESS;
}

__attribute__((visibility("default"))) void *clGetExtensionFunctionAddress(const char *name) {
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0)
        return (void *)clIcdGetPlatformIDsKHR;
    return strcmp(name, "clGetPlatformInfo") ? NULL : (void *)API(clGetPlatformInfo);
}

cl_int API(clGetPlatformIDs)(cl_uint entries, cl_platform_id *platforms, cl_uint *number) {
    return clIcdGetPlatformIDsKHR(entries, platforms, number);
}

static cl_int text(const char *text, size_t size, void *value, size_t *needed) {
    return answer(text, strlen(text) + 1, size, value, needed);
}

cl_int API(clGetPlatformInfo)(cl_platform_id handle, cl_platform_info what, size_t size, void *value,
                              size_t *needed) {
    KNOWN(handle, PLATFORM);
    switch (what) {
    case CL_PLATFORM_PROFILE: return text("FULL_PROFILE", size, value, needed);
    case CL_PLATFORM_VERSION: return text("OpenCL 1.2 nasty", size, value, needed);
    case CL_PLATFORM_NAME:
    case CL_PLATFORM_VENDOR: return text("Nasty driver", size, value, needed);
    case CL_PLATFORM_EXTENSIONS: return text("cl_khr_icd", size, value, needed);
    case CL_PLATFORM_ICD_SUFFIX_KHR: return text("NASTY", size, value, needed);
    default: return CL_INVALID_VALUE;
    }
}

cl_int API(clGetDeviceIDs)(cl_platform_id handle, cl_device_type wanted, cl_uint entries, cl_device_id *list,
                           cl_uint *number) {
    KNOWN(handle, PLATFORM);
    if (!(wanted & (type | CL_DEVICE_TYPE_DEFAULT)))
        return CL_DEVICE_NOT_FOUND;
    for (cl_uint i = 0; list && i < entries && i < count; i++)
        list[i] = &devices[i];
    if (number)
        *number = count;
    return CL_SUCCESS;
}

cl_int API(clGetDeviceInfo)(cl_device_id device, cl_device_info what, size_t size, void *value, size_t *needed) {
    LOCKED;
    KNOWN(device, DEVICE);
    const cl_device_partition_property ways[2] = {CL_DEVICE_PARTITION_EQUALLY, CL_DEVICE_PARTITION_BY_COUNTS};
    const cl_device_exec_capabilities kernels = CL_EXEC_KERNEL;
    const cl_device_affinity_domain none = 0;
    const cl_bool unified = type == CL_DEVICE_TYPE_CPU, no = CL_FALSE;
    const cl_command_queue_properties orders = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE;
    const cl_uint references = device->parent ? device->object.users : 1;
    const cl_platform_id own = &platform;
#define VALUE(variable) return answer(&(variable), sizeof(variable), size, value, needed)
    switch (what) {
    case CL_DEVICE_TYPE: VALUE(type);
    case CL_DEVICE_PLATFORM: VALUE(own);
    case CL_DEVICE_NAME: {
        char name[32];
        snprintf(name, sizeof name, "Nasty device %d", device->memory);
        return text(getenv("NASTY_UNLIKE") ? name : "Nasty device", size, value, needed);
    }
    case CL_DEVICE_VENDOR: return text("Nasty driver", size, value, needed);
    case CL_DEVICE_VERSION: return text("OpenCL 1.2 nasty", size, value, needed);
    case CL_DEVICE_OPENCL_C_VERSION: return text("OpenCL C 1.2 nasty", size, value, needed);
    case CL_DRIVER_VERSION: return text("1", size, value, needed);
    case CL_DEVICE_MAX_COMPUTE_UNITS: VALUE(device->units);
    case CL_DEVICE_PARTITION_MAX_SUB_DEVICES: VALUE(device->units);
    case CL_DEVICE_PARTITION_PROPERTIES: VALUE(ways);
    case CL_DEVICE_PARTITION_AFFINITY_DOMAIN: VALUE(none);
    case CL_DEVICE_PARTITION_TYPE: return answer(device->way, device->parent ? 3 * sizeof *device->way : 0, size, value, needed);
    case CL_DEVICE_PARENT_DEVICE: VALUE(device->parent);
    case CL_DEVICE_REFERENCE_COUNT: VALUE(references);
    case CL_DEVICE_EXECUTION_CAPABILITIES: VALUE(kernels);
    case CL_DEVICE_IMAGE_SUPPORT: VALUE(no);
    case CL_DEVICE_HOST_UNIFIED_MEMORY: VALUE(unified);
    case CL_DEVICE_QUEUE_PROPERTIES: VALUE(orders);
    default: return pocl->clGetDeviceInfo(pocl_device, what, size, value, needed);
    }
}

static cl_device_id part_of(cl_device_id device, cl_uint units, const cl_device_partition_property *way) {
    cl_device_id part = new_object(sizeof *part, DEVICE);
    part->parent = device;
    part->memory = device->memory;
    part->units = units;
    part->way[0] = way[0];
    part->way[1] = way[1];
    use(device);
    return part;
}

cl_int API(clCreateSubDevices)(cl_device_id device, const cl_device_partition_property *way, cl_uint entries,
                               cl_device_id *parts, cl_uint *number) {
    LOCKED;
    KNOWN(device, DEVICE);
    cl_uint units[64], made = 0, sum = 0;
    if (!way || (way[0] != CL_DEVICE_PARTITION_EQUALLY && way[0] != CL_DEVICE_PARTITION_BY_COUNTS))
        return CL_INVALID_VALUE;
    if (way[0] == CL_DEVICE_PARTITION_EQUALLY)
        for (; way[1] > 0 && sum + way[1] <= device->units && made < 64; sum += way[1])
            units[made++] = way[1];
    else
        for (; way[1 + made] != CL_DEVICE_PARTITION_BY_COUNTS_LIST_END && made < 64; sum += units[made++])
            units[made] = way[1 + made];
    if (made == 0 || sum > device->units)
        return CL_DEVICE_PARTITION_FAILED;
    if (parts && entries < made)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; parts && i < made; i++)
        parts[i] = part_of(device, units[i], way);
    if (number)
        *number = made;
    return CL_SUCCESS;
}

cl_context API(clCreateContext)(const cl_context_properties *properties, cl_uint number, const cl_device_id *list,
                                void(CL_CALLBACK *function)(const char *, const void *, size_t, void *), void *data,
                                cl_int *code) {
    (void)function, (void)data;
    LOCKED;
    if (number == 0 || number > MOST || !list)
        RETURN(NULL, CL_INVALID_VALUE);
    cl_context context = new_object(sizeof *context, CONTEXT);
    context->count = number;
    for (cl_uint i = 0; i < number; i++) {
        context->devices[i] = KNOWN(list[i], DEVICE);
        use(list[i]);
    }
    while (properties && properties[context->properties] && context->properties < 15)
        context->properties++;
    if (properties)
        memcpy(context->property, properties, sizeof *properties * ++context->properties);
    RETURN(context, CL_SUCCESS);
}

cl_context API(clCreateContextFromType)(const cl_context_properties *properties, cl_device_type wanted,
                                        void(CL_CALLBACK *function)(const char *, const void *, size_t, void *),
                                        void *data, cl_int *code) {
    cl_device_id all[MOST];
    cl_uint number = 0;
    if (API(clGetDeviceIDs)(&platform, wanted, MOST, all, &number))
        RETURN(NULL, CL_DEVICE_NOT_FOUND);
    return API(clCreateContext)(properties, number, all, function, data, code);
}

cl_int API(clGetContextInfo)(cl_context context, cl_context_info what, size_t size, void *value, size_t *needed) {
    LOCKED;
    KNOWN(context, CONTEXT);
    switch (what) {
    case CL_CONTEXT_REFERENCE_COUNT: VALUE(context->object.users);
    case CL_CONTEXT_NUM_DEVICES: VALUE(context->count);
    case CL_CONTEXT_DEVICES: return answer(context->devices, context->count * sizeof *context->devices, size, value, needed);
    case CL_CONTEXT_PROPERTIES: return answer(context->property, context->properties * sizeof *context->property, size, value, needed);
    default: return CL_INVALID_VALUE;
    }
}
