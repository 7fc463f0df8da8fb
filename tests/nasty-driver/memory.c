/* Buffers. Each device has a copy of its own; bytes come there when a command needs them. */
#include "nasty.h"
#include <stdlib.h>
#include <string.h>

static cl_mem pinned; /* all buffers whose area is memory of CL_MEM_ALLOC_HOST_PTR */

static unsigned char *poisoned(size_t size) {
    void *bytes = NULL;
    if (posix_memalign(&bytes, 4096, size))
        complain("no memory for %zu bytes", size);
    return memset(bytes, POISON, size);
}

/* Where maps show the first byte of a buffer. */
static unsigned char *area_of(cl_mem mem) {
    cl_mem root = mem->root;
    if (root->program)
        return (unsigned char *)root->program + mem->origin;
    if (!root->area)
        root->area = poisoned(root->size);
    return root->area + mem->origin;
}

/* The first byte of a buffer in a device's memory. */
unsigned char *bytes_at(cl_mem mem, int device) {
    cl_mem root = mem->root;
    if (root->shared)
        return area_of(mem);
    if (!root->bytes[device])
        root->bytes[device] = poisoned(root->size);
    return root->bytes[device] + mem->origin;
}

/* Copies to a device what others have of a range and it has not. */
void bring(cl_mem mem, int device, size_t at, size_t size) {
    cl_mem root = mem->root;
    unsigned char *to = bytes_at(root, device), *valid = root->valid, bit = 1 << device;
    size_t end = mem->origin + at + size;
    for (size_t i = mem->origin + at, run; i < end && !root->shared; i = run) {
        unsigned char holders = valid[i];
        for (run = i + 1; run < end && valid[run] == holders;)
            run++;
        if (holders == 0 || holders & bit)
            continue;
        memcpy(to + i, root->bytes[__builtin_ctz(holders)] + i, run - i);
        memset(valid + i, holders | bit, run - i);
    }
}

/* Notes that only this device has the bytes of a range. */
void written(cl_mem mem, int device, size_t at, size_t size) {
    if (!mem->root->shared)
        memset(mem->root->valid + mem->origin + at, 1 << device, size);
}

/* Whether memory of the program is mapped memory that a driver has pinned. */
bool is_pinned(const void *address, size_t size) {
    const unsigned char *first = address;
    for (cl_mem mem = pinned; mem; mem = mem->next)
        if (mem->area && first >= mem->area && first < mem->area + mem->size) {
            if (!mem->maps || first + size > mem->area + mem->size)
                complain("a command uses memory of a buffer that is not mapped");
            return true;
        }
    return false;
}

cl_mem API(clCreateBuffer)(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *code) {
    LOCKED;
    KNOWN(context, CONTEXT);
    cl_ulong most = 0;
    pocl->clGetDeviceInfo(pocl_device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most, &most, NULL);
    if (size == 0 || size > most)
        RETURN(NULL, CL_INVALID_BUFFER_SIZE);
    if (!host != !(flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)))
        RETURN(NULL, CL_INVALID_HOST_PTR);
    cl_mem mem = new_object(sizeof *mem, MEM);
    mem->context = context;
    mem->root = mem;
    mem->flags = flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY) ? flags : flags | CL_MEM_READ_WRITE;
    mem->size = size;
    mem->valid = calloc(1, size);
    mem->program = flags & CL_MEM_USE_HOST_PTR ? host : NULL;
    mem->shared = type == CL_DEVICE_TYPE_CPU && flags & (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR);
    if (flags & CL_MEM_ALLOC_HOST_PTR) {
        mem->next = pinned;
        pinned = mem;
    }
    if (host) {
        int device = context->devices[chance(context->count)]->memory;
        memmove(bytes_at(mem, device), host, size);
        written(mem, device, 0, size);
    }
    use(context);
    RETURN(mem, CL_SUCCESS);
}

cl_mem API(clCreateSubBuffer)(cl_mem parent, cl_mem_flags flags, cl_buffer_create_type what, const void *info,
                              cl_int *code) {
    LOCKED;
    KNOWN(parent, MEM);
    const cl_buffer_region *region = info;
    cl_uint bits = 0;
    pocl->clGetDeviceInfo(pocl_device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
    if (parent->root != parent)
        RETURN(NULL, CL_INVALID_MEM_OBJECT);
    if (what != CL_BUFFER_CREATE_TYPE_REGION || !region || region->origin + region->size > parent->size)
        RETURN(NULL, CL_INVALID_VALUE);
    if (region->size == 0)
        RETURN(NULL, CL_INVALID_BUFFER_SIZE);
    if (region->origin % (bits / 8))
        RETURN(NULL, CL_MISALIGNED_SUB_BUFFER_OFFSET);
    cl_mem mem = new_object(sizeof *mem, MEM);
    mem->context = parent->context;
    mem->root = parent;
    mem->flags = flags & (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY) ? flags : flags | parent->flags;
    mem->origin = region->origin;
    mem->size = region->size;
    use(parent);
    use(mem->context);
    RETURN(mem, CL_SUCCESS);
}

/* Frees what an object has that nobody uses any more. */
void free_mem(cl_mem mem) {
    for (Mapped *map = mem->maps, *next; map; map = next) {
        next = map->next;
        free(map);
    }
    if (mem->root != mem)
        drop(mem->root);
    for (cl_mem *at = &pinned; *at; at = &(*at)->next)
        if (*at == mem) {
            *at = mem->next;
            break;
        }
    for (int device = 0; device < MOST; device++)
        free(mem->bytes[device]);
    free(mem->valid);
    free(mem->area);
    drop(mem->context);
    if (mem->endings)
        notify(NULL, NULL, mem);
}

cl_int API(clSetMemObjectDestructorCallback)(cl_mem mem, void(CL_CALLBACK *function)(cl_mem, void *), void *data) {
    LOCKED;
    KNOWN(mem, MEM);
    if (!function)
        return CL_INVALID_VALUE;
    Ending *ending = malloc(sizeof *ending);
    *ending = (Ending){mem->endings, function, data};
    mem->endings = ending;
    return CL_SUCCESS;
}

cl_int API(clGetMemObjectInfo)(cl_mem mem, cl_mem_info what, size_t size, void *value, size_t *needed) {
    LOCKED;
    KNOWN(mem, MEM);
    const cl_mem_object_type kind = CL_MEM_OBJECT_BUFFER;
    const cl_mem parent = mem->root == mem ? NULL : mem->root;
    void *host = mem->root->program ? area_of(mem) : NULL;
    cl_uint maps = 0;
    for (Mapped *map = mem->root->maps; map; map = map->next)
        maps++;
#define VALUE(variable) return answer(&(variable), sizeof(variable), size, value, needed)
    switch (what) {
    case CL_MEM_TYPE: VALUE(kind);
    case CL_MEM_FLAGS: VALUE(mem->flags);
    case CL_MEM_SIZE: VALUE(mem->size);
    case CL_MEM_HOST_PTR: VALUE(host);
    case CL_MEM_MAP_COUNT: VALUE(maps);
    case CL_MEM_REFERENCE_COUNT: VALUE(mem->object.users);
    case CL_MEM_CONTEXT: VALUE(mem->context);
    case CL_MEM_ASSOCIATED_MEMOBJECT: VALUE(parent);
    case CL_MEM_OFFSET: VALUE(mem->origin);
    default: return CL_INVALID_VALUE;
    }
}

void *API(clEnqueueMapBuffer)(cl_command_queue queue, cl_mem mem, cl_bool blocking, cl_map_flags flags, size_t at,
                              size_t size, cl_uint count, const cl_event *list, cl_event *event, cl_int *code) {
    LOCKED;
    KNOWN(queue, QUEUE);
    KNOWN(mem, MEM);
    if (size == 0 || at + size > mem->size)
        RETURN(NULL, CL_INVALID_VALUE);
    Mapped *map = malloc(sizeof *map);
    *map = (Mapped){mem->root->maps, mem->origin + at, size, area_of(mem) + at, flags};
    mem->root->maps = map;
    Work work = {.to.mem = mem, .map = map};
    void *address = map->address;
    cl_int failed = enqueue(queue, CL_COMMAND_MAP_BUFFER, &work, count, list, blocking, event);
    RETURN(failed ? NULL : address, failed);
}

cl_int API(clEnqueueUnmapMemObject)(cl_command_queue queue, cl_mem mem, void *address, cl_uint count,
                                    const cl_event *list, cl_event *event) {
    LOCKED;
    KNOWN(queue, QUEUE);
    KNOWN(mem, MEM);
    Mapped **at = &mem->root->maps, *map;
    while ((map = *at) && map->address != address)
        at = &map->next;
    if (!map)
        return CL_INVALID_VALUE;
    *at = map->next;
    Work work = {.to.mem = mem, .map = map};
    return enqueue(queue, CL_COMMAND_UNMAP_MEM_OBJECT, &work, count, list, CL_FALSE, event);
}

/* What a map or the end of one does. */
void run_map(cl_event event) {
    int device = event->queue->device->memory;
    Mapped *map = event->work.map;
    cl_mem root = event->work.to.mem->root;
    bool begins = event->type == CL_COMMAND_MAP_BUFFER, discards = map->flags & CL_MAP_WRITE_INVALIDATE_REGION;
    unsigned char *bytes = bytes_at(root, device) + map->at;
    if (root->shared)
        return;
    if (begins && discards) {
        memset(map->address, POISON, map->size);
    } else if (begins) {
        bring(root, device, map->at, map->size);
        memcpy(map->address, bytes, map->size);
    } else {
        if (map->flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) {
            memcpy(bytes, map->address, map->size);
            written(root, device, map->at, map->size);
        }
        if (!root->maps && !root->program)
            memset(map->address, POISON, map->size);
    }
}
