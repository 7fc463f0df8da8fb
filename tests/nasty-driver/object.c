/* Objects, the lock that guards them, and what is said of their misuse. */
#include "nasty.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ENTRY(name) .name = API(name),
const struct _cl_icd_dispatch nasty_table = {FUNCTIONS(ENTRY)};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static bool has_ended;

void complain(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fflush(stdout);
    fprintf(stderr, "nasty driver: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    abort();
}

/* A function's name without our prefix. */
static const char *plain(const char *function) {
    return strncmp(function, "nasty_", 6) ? function : function + 6;
}

int take_lock(const char *function) {
    pthread_mutex_lock(&lock);
    if (has_ended)
        complain("%s is called after the drivers have ended: a thread outlives them", plain(function));
    return 1;
}

void give_lock(const int *taken) {
    (void)taken;
    pthread_mutex_unlock(&lock);
}

/* Called at the program's end, before PoCL ends. Nothing runs after it. */
void end_driver(void) {
    pthread_mutex_lock(&pocl_lock);
    pthread_mutex_lock(&lock);
    complain_of_endless_commands();
    has_ended = true;
    pthread_mutex_unlock(&lock);
}

unsigned chance(unsigned below) {
    static unsigned long long state;
    if (!state)
        state = getenv("NASTY_SEED") ? 2 * strtoull(getenv("NASTY_SEED"), NULL, 10) + 1 : 1;
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % below;
}

/* A clock unlike that of others. */
cl_ulong now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec + 7200000000000ull;
}

cl_int answer(const void *data, size_t length, size_t size, void *value, size_t *needed) {
    if (value && size < length)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, data, length);
    if (needed)
        *needed = length;
    return CL_SUCCESS;
}

static const char *name_of(Kind kind) {
    static const char *names[] = {"platform", "device", "context", "queue", "memory object",
                                  "program", "kernel", "event", "object that was freed"};
    return kind < PLATFORM || kind > DEAD ? "no object" : names[kind - PLATFORM];
}

void *new_object(size_t size, Kind kind) {
    Object *object = calloc(1, size);
    *object = (Object){&nasty_table, kind, 1, 0};
    return object;
}

void *known(const void *handle, Kind kind, const char *function) {
    const Object *object = handle;
    if (!object)
        complain("%s got no %s", plain(function), name_of(kind));
    if (object->kind != kind)
        complain("%s got %p, which is %s, in the place of a %s", plain(function), handle, name_of(object->kind),
                 name_of(kind));
    if (object->users <= 0)
        complain("%s got a %s that was released", plain(function), name_of(kind));
    return (void *)handle;
}

/* Frees an object some time after its end, so that a use of it is noticed. */
void bury(void *dead) {
    Object *object = dead;
    static Object *graves[1024];
    static unsigned at;
    object->kind = DEAD;
    free(graves[at % 1024]);
    graves[at++ % 1024] = object;
}

static void end_if_unused(Object *object) {
    if (object->users + object->uses > 0)
        return;
    switch (object->kind) {
    case CONTEXT:
        for (cl_uint i = 0; i < ((cl_context)object)->count; i++)
            drop(((cl_context)object)->devices[i]);
        break;
    case MEM:
        free_mem((cl_mem)object);
        break;
    case PROGRAM:
        free_program((cl_program)object);
        break;
    case KERNEL:
        free_kernel((cl_kernel)object);
        break;
    case EVENT:
        free_event((cl_event)object);
        break;
    case DEVICE:
        if (!((cl_device_id)object)->parent)
            return;
        drop(((cl_device_id)object)->parent);
        break;
    case QUEUE:
        /* Its thread ends, and buries it. */
        pthread_cond_broadcast(&changed);
        return;
    default:
        return;
    }
    bury(object);
}

void use(void *object) {
    ((Object *)object)->uses++;
}

void drop(void *object) {
    if (!object)
        return;
    ((Object *)object)->uses--;
    end_if_unused(object);
}

static cl_int retain(void *object) {
    ((Object *)object)->users++;
    return CL_SUCCESS;
}

static cl_int release(void *object) {
    ((Object *)object)->users--;
    end_if_unused(object);
    return CL_SUCCESS;
}

#define COUNTED(type, name, kind)                                                                       \
    cl_int API(clRetain##name)(type object) { LOCKED; return retain(KNOWN(object, kind)); }             \
    cl_int API(clRelease##name)(type object) { LOCKED; return release(KNOWN(object, kind)); }

COUNTED(cl_context, Context, CONTEXT)
COUNTED(cl_mem, MemObject, MEM)
COUNTED(cl_program, Program, PROGRAM)
COUNTED(cl_kernel, Kernel, KERNEL)
COUNTED(cl_event, Event, EVENT)

/* Whole devices are not counted. */
cl_int API(clRetainDevice)(cl_device_id device) {
    LOCKED;
    KNOWN(device, DEVICE);
    return device->parent ? retain(device) : CL_SUCCESS;
}

cl_int API(clReleaseDevice)(cl_device_id device) {
    LOCKED;
    KNOWN(device, DEVICE);
    return device->parent ? release(device) : CL_SUCCESS;
}

cl_int API(clRetainCommandQueue)(cl_command_queue queue) {
    LOCKED;
    return retain(KNOWN(queue, QUEUE));
}

/* A queue is flushed when it is released. */
cl_int API(clReleaseCommandQueue)(cl_command_queue queue) {
    cl_int code = API(clFlush)(queue);
    LOCKED;
    return code ? code : release(KNOWN(queue, QUEUE));
}
