/* Programs and kernels, which PoCL compiles and runs. A launch has the arguments that its
 * kernel has when it is enqueued, and PoCL is given the memory of its device. */
#include "nasty.h"
#include <stdlib.h>
#include <string.h>

#define VALUE(variable) return answer(&(variable), sizeof(variable), size, value, needed)

static cl_program program_of(cl_context context, cl_program inner, cl_int made, cl_int *code) {
    if (!inner)
        RETURN(NULL, made);
    cl_program program = new_object(sizeof *program, PROGRAM);
    program->context = context;
    program->pocl = inner;
    use(context);
    RETURN(program, made);
}

cl_program API(clCreateProgramWithSource)(cl_context context, cl_uint count, const char **texts, const size_t *lengths,
                                          cl_int *code) {
    LOCKED;
    cl_int made;
    KNOWN(context, CONTEXT);
    cl_program inner = pocl->clCreateProgramWithSource(pocl_context, count, texts, lengths, &made);
    return program_of(context, inner, made, code);
}

cl_program API(clCreateProgramWithBinary)(cl_context context, cl_uint count, const cl_device_id *list,
                                          const size_t *lengths, const unsigned char **binaries, cl_int *each,
                                          cl_int *code) {
    LOCKED;
    cl_int made;
    KNOWN(context, CONTEXT);
    for (cl_uint i = 0; i < count; i++)
        KNOWN(list[i], DEVICE);
    cl_program inner = pocl->clCreateProgramWithBinary(pocl_context, 1, &pocl_device, lengths, binaries, each, &made);
    for (cl_uint i = 1; each && i < count; i++)
        each[i] = each[0];
    return program_of(context, inner, made, code);
}

/* Begins something that compiles, without the lock of all objects. */
static void begin_build(cl_program program, const char *function) {
    pthread_mutex_lock(&lock);
    use(known(program, PROGRAM, function));
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&pocl_lock);
}

static cl_int end_build(cl_program program, cl_int result, void(CL_CALLBACK *function)(cl_program, void *),
                        void *data) {
    pthread_mutex_unlock(&pocl_lock);
    if (function)
        function(program, data);
    pthread_mutex_lock(&lock);
    drop(program);
    pthread_mutex_unlock(&lock);
    return result;
}

cl_int API(clBuildProgram)(cl_program program, cl_uint count, const cl_device_id *list, const char *options,
                           void(CL_CALLBACK *function)(cl_program, void *), void *data) {
    (void)count, (void)list;
    begin_build(program, __func__);
    return end_build(program, pocl->clBuildProgram(program->pocl, 1, &pocl_device, options, NULL, NULL), function,
                     data);
}

cl_int API(clCompileProgram)(cl_program program, cl_uint count, const cl_device_id *list, const char *options,
                             cl_uint number, const cl_program *headers, const char **names,
                             void(CL_CALLBACK *function)(cl_program, void *), void *data) {
    (void)count, (void)list;
    cl_program inner[32];
    for (cl_uint i = 0; i < number && i < 32; i++)
        inner[i] = headers[i]->pocl;
    begin_build(program, __func__);
    cl_int result = pocl->clCompileProgram(program->pocl, 1, &pocl_device, options, number, number ? inner : NULL,
                                           names, NULL, NULL);
    return end_build(program, result, function, data);
}

cl_program API(clLinkProgram)(cl_context context, cl_uint count, const cl_device_id *list, const char *options,
                              cl_uint number, const cl_program *programs,
                              void(CL_CALLBACK *function)(cl_program, void *), void *data, cl_int *code) {
    (void)count, (void)list;
    cl_program inner[32], made = NULL;
    cl_int result;
    for (cl_uint i = 0; i < number && i < 32; i++)
        inner[i] = ((cl_program)KNOWN(programs[i], PROGRAM))->pocl;
    pthread_mutex_lock(&pocl_lock);
    made = pocl->clLinkProgram(pocl_context, 1, &pocl_device, options, number, inner, NULL, NULL, &result);
    pthread_mutex_unlock(&pocl_lock);
    {
        LOCKED;
        made = program_of(KNOWN(context, CONTEXT), made, result, code);
    }
    if (function)
        function(made, data);
    return made;
}

cl_int API(clUnloadPlatformCompiler)(cl_platform_id handle) {
    KNOWN(handle, PLATFORM);
    return CL_SUCCESS;
}

void free_program(cl_program program) {
    pocl->clReleaseProgram(program->pocl);
    drop(program->context);
}

cl_int API(clGetProgramInfo)(cl_program program, cl_program_info what, size_t size, void *value, size_t *needed) {
    LOCKED;
    KNOWN(program, PROGRAM);
    cl_context context = program->context;
    size_t sizes[MOST] = {0};
    cl_int code = CL_SUCCESS;
    switch (what) {
    case CL_PROGRAM_REFERENCE_COUNT: VALUE(program->object.users);
    case CL_PROGRAM_CONTEXT: VALUE(context);
    case CL_PROGRAM_NUM_DEVICES: VALUE(context->count);
    case CL_PROGRAM_DEVICES: return answer(context->devices, context->count * sizeof *context->devices, size, value, needed);
    case CL_PROGRAM_BINARY_SIZES:
        code = pocl->clGetProgramInfo(program->pocl, what, sizeof *sizes, sizes, NULL);
        for (cl_uint i = 1; i < context->count; i++)
            sizes[i] = sizes[0];
        return code ? code : answer(sizes, context->count * sizeof *sizes, size, value, needed);
    case CL_PROGRAM_BINARIES:
        for (cl_uint i = 0; value && i < context->count && !code; i++)
            if (((void **)value)[i])
                code = pocl->clGetProgramInfo(program->pocl, what, sizeof(void *), (void **)value + i, NULL);
        if (needed)
            *needed = context->count * sizeof(void *);
        return code;
    default: return pocl->clGetProgramInfo(program->pocl, what, size, value, needed);
    }
}

cl_int API(clGetProgramBuildInfo)(cl_program program, cl_device_id device, cl_program_build_info what, size_t size,
                                  void *value, size_t *needed) {
    LOCKED;
    KNOWN(program, PROGRAM);
    KNOWN(device, DEVICE);
    return pocl->clGetProgramBuildInfo(program->pocl, pocl_device, what, size, value, needed);
}

static cl_kernel kernel_named(cl_program program, const char *name, cl_int *code) {
    cl_int made;
    cl_kernel inner = pocl->clCreateKernel(program->pocl, name, &made);
    if (!inner)
        RETURN(NULL, made);
    cl_kernel kernel = new_object(sizeof *kernel, KERNEL);
    kernel->program = program;
    kernel->pocl = inner;
    kernel->checker = pocl->clCreateKernel(program->pocl, name, &made);
    pocl->clGetKernelInfo(inner, CL_KERNEL_NUM_ARGS, sizeof kernel->count, &kernel->count, NULL);
    kernel->arguments = calloc(kernel->count + 1, sizeof *kernel->arguments);
    for (cl_uint i = 0; i < kernel->count; i++) {
        /* PoCL takes no value for all pointers, and a null one for those that are not local. */
        const cl_mem none = NULL;
        kernel->arguments[i].is_mem = !pocl->clSetKernelArg(kernel->checker, i, sizeof none, NULL) &&
                                      !pocl->clSetKernelArg(kernel->checker, i, sizeof none, &none);
    }
    use(program);
    RETURN(kernel, CL_SUCCESS);
}

cl_kernel API(clCreateKernel)(cl_program program, const char *name, cl_int *code) {
    LOCKED;
    return kernel_named(KNOWN(program, PROGRAM), name, code);
}

cl_int API(clCreateKernelsInProgram)(cl_program program, cl_uint entries, cl_kernel *kernels, cl_uint *number) {
    LOCKED;
    KNOWN(program, PROGRAM);
    cl_kernel inner[64];
    cl_uint found = 0;
    cl_int code = pocl->clCreateKernelsInProgram(program->pocl, 64, inner, &found);
    if (number)
        *number = found;
    if (!code && kernels && entries < found)
        code = CL_INVALID_VALUE;
    for (cl_uint i = 0; i < found; i++) {
        char name[256];
        pocl->clGetKernelInfo(inner[i], CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
        pocl->clReleaseKernel(inner[i]);
        if (!code && kernels)
            kernels[i] = kernel_named(program, name, NULL);
    }
    return code;
}

static void unset(Argument *argument) {
    free(argument->value);
    drop(argument->mem);
    argument->value = NULL;
    argument->mem = NULL;
}

void free_kernel(cl_kernel kernel) {
    for (cl_uint i = 0; i < kernel->count; i++)
        unset(&kernel->arguments[i]);
    free(kernel->arguments);
    pocl->clReleaseKernel(kernel->pocl);
    pocl->clReleaseKernel(kernel->checker);
    drop(kernel->program);
}

cl_int API(clSetKernelArg)(cl_kernel kernel, cl_uint index, size_t size, const void *value) {
    LOCKED;
    KNOWN(kernel, KERNEL);
    if (index >= kernel->count)
        return CL_INVALID_ARG_INDEX;
    Argument *argument = &kernel->arguments[index];
    cl_mem mem = argument->is_mem && value ? *(const cl_mem *)value : NULL;
    if (argument->is_mem && size != sizeof mem)
        return CL_INVALID_ARG_SIZE;
    if (mem && ((cl_mem)KNOWN(mem, MEM))->context != kernel->program->context)
        complain("an argument is a buffer of another context");
    cl_int code = argument->is_mem ? CL_SUCCESS : pocl->clSetKernelArg(kernel->checker, index, size, value);
    if (code)
        return code;
    unset(argument);
    argument->is_set = true;
    argument->size = size;
    if (mem) {
        use(mem);
        argument->mem = mem;
    } else if (!argument->is_mem && value) {
        argument->value = memcpy(malloc(size), value, size);
    }
    return CL_SUCCESS;
}

cl_int API(clGetKernelInfo)(cl_kernel kernel, cl_kernel_info what, size_t size, void *value, size_t *needed) {
    LOCKED;
    KNOWN(kernel, KERNEL);
    switch (what) {
    case CL_KERNEL_REFERENCE_COUNT: VALUE(kernel->object.users);
    case CL_KERNEL_CONTEXT: VALUE(kernel->program->context);
    case CL_KERNEL_PROGRAM: VALUE(kernel->program);
    default: return pocl->clGetKernelInfo(kernel->checker, what, size, value, needed);
    }
}

cl_int API(clGetKernelArgInfo)(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what, size_t size, void *value,
                               size_t *needed) {
    LOCKED;
    KNOWN(kernel, KERNEL);
    return pocl->clGetKernelArgInfo(kernel->checker, index, what, size, value, needed);
}

/* The most work-items of a group. */
static size_t most_items(cl_kernel kernel) {
    size_t most = 0;
    pocl->clGetKernelWorkGroupInfo(kernel->checker, pocl_device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL);
    const char *limit = getenv("NASTY_GROUP");
    return limit && strtoul(limit, NULL, 10) < most ? strtoul(limit, NULL, 10) : most;
}

cl_int API(clGetKernelWorkGroupInfo)(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what,
                                     size_t size, void *value, size_t *needed) {
    LOCKED;
    KNOWN(kernel, KERNEL);
    if (device)
        KNOWN(device, DEVICE);
    if (what == CL_KERNEL_WORK_GROUP_SIZE) {
        size_t most = most_items(kernel);
        VALUE(most);
    }
    return pocl->clGetKernelWorkGroupInfo(kernel->checker, pocl_device, what, size, value, needed);
}

/* The code for a size of groups that the kernel or the device cannot have. */
static cl_int check_groups(cl_kernel kernel, const Work *work) {
    size_t wanted[3] = {0, 0, 0}, most = most_items(kernel), all = 1;
    pocl->clGetKernelWorkGroupInfo(kernel->checker, pocl_device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof wanted,
                                   wanted, NULL);
    for (cl_uint i = 0; i < work->dimensions; i++) {
        all *= work->has_local ? work->local[i] : 1;
        if (wanted[0] && (!work->has_local || work->local[i] != wanted[i]))
            return CL_INVALID_WORK_GROUP_SIZE;
        if (work->has_local && (work->local[i] == 0 || work->global[i] % work->local[i]))
            return CL_INVALID_WORK_GROUP_SIZE;
    }
    return all > most ? CL_INVALID_WORK_GROUP_SIZE : CL_SUCCESS;
}

cl_int API(clEnqueueNDRangeKernel)(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
                                   const size_t *global, const size_t *local, cl_uint count, const cl_event *list,
                                   cl_event *event) {
    LOCKED;
    KNOWN(queue, QUEUE);
    KNOWN(kernel, KERNEL);
    if (kernel->program->context != queue->context)
        complain("a kernel is launched on a queue of another context");
    if (dimensions < 1 || dimensions > 3)
        return CL_INVALID_WORK_DIMENSION;
    Work work = {.kernel = kernel, .dimensions = dimensions, .has_local = local};
    for (cl_uint i = 0; i < dimensions; i++) {
        work.offset[i] = offset ? offset[i] : 0;
        work.global[i] = global ? global[i] : 0;
        work.local[i] = local ? local[i] : 0;
        if (work.global[i] == 0)
            return CL_INVALID_GLOBAL_WORK_SIZE;
    }
    cl_int code = check_groups(kernel, &work);
    if (code)
        return code;
    for (cl_uint i = 0; i < kernel->count; i++)
        if (!kernel->arguments[i].is_set)
            return CL_INVALID_KERNEL_ARGS;
    work.arguments = malloc((kernel->count + 1) * sizeof *work.arguments);
    for (cl_uint i = 0; i < kernel->count; i++) {
        Argument *copy = &work.arguments[i];
        *copy = kernel->arguments[i];
        if (copy->value)
            copy->value = memcpy(malloc(copy->size), copy->value, copy->size);
        if (copy->mem)
            use(copy->mem);
    }
    return enqueue(queue, CL_COMMAND_NDRANGE_KERNEL, &work, count, list, CL_FALSE, event);
}

cl_int API(clEnqueueTask)(cl_command_queue queue, cl_kernel kernel, cl_uint count, const cl_event *list,
                          cl_event *event) {
    const size_t one = 1;
    return API(clEnqueueNDRangeKernel)(queue, kernel, 1, NULL, &one, &one, count, list, event);
}

/* Launches with PoCL, over buffers of PoCL in the device's memory. */
static cl_int launch(const Work *work, cl_mem *inner) {
    cl_kernel kernel = work->kernel;
    cl_int code = CL_SUCCESS;
    for (cl_uint i = 0; i < kernel->count && !code; i++) {
        const Argument *argument = &work->arguments[i];
        const void *value = argument->is_mem ? &inner[i] : argument->value;
        code = pocl->clSetKernelArg(kernel->pocl, i, argument->size, value);
    }
    if (!code)
        code = pocl->clEnqueueNDRangeKernel(pocl_queue, kernel->pocl, work->dimensions, work->offset, work->global,
                                            work->has_local ? work->local : NULL, 0, NULL, NULL);
    cl_int finished = pocl->clFinish(pocl_queue);
    return code ? code : finished;
}

cl_int run_kernel(cl_event event) {
    Work *work = &event->work;
    int device = event->queue->device->memory;
    cl_uint count = work->kernel->count;
    unsigned char *bytes[64];
    cl_mem inner[64] = {NULL};
    for (cl_uint i = 0; i < count && i < 64; i++) {
        cl_mem mem = work->arguments[i].mem;
        if (mem) {
            bring(mem, device, 0, mem->size);
            bytes[i] = bytes_at(mem, device);
        }
    }
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&pocl_lock);
    for (cl_uint i = 0; i < count && i < 64; i++)
        if (work->arguments[i].mem)
            inner[i] = pocl->clCreateBuffer(pocl_context, CL_MEM_USE_HOST_PTR, work->arguments[i].mem->size, bytes[i],
                                            NULL);
    cl_int code = launch(work, inner);
    for (cl_uint i = 0; i < count && i < 64; i++)
        if (inner[i])
            pocl->clReleaseMemObject(inner[i]);
    pthread_mutex_unlock(&pocl_lock);
    pthread_mutex_lock(&lock);
    for (cl_uint i = 0; i < count; i++) {
        const Argument *argument = &work->arguments[i];
        if (argument->mem && !(argument->mem->flags & CL_MEM_READ_ONLY))
            written(argument->mem, device, 0, argument->mem->size);
    }
    return code;
}
