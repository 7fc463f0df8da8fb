/* Streams, which are threads, and events. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Rows of a copy. */
typedef struct {
    uint64_t from, to;
    size_t from_pitch, to_pitch, bytes, count;
    int reads_device, writes_device;
} Copy;

typedef struct Command {
    enum { COPY, LAUNCH, GRAPH, RECORD, WAIT, CALL } kind;
    Copy copy;
    Launch launch;
    Kernel kernel;
    void (*function)(void *);
    void *data;
    Executable *graph;
    /* Which launch of the graph it is. */
    uint64_t number;
    Event *event;
    /* The record of the event that is made or waited for. */
    uint64_t record;
    struct Command *next;
} Command;

struct Stream {
    Context *context;
    uint64_t generation;
    Command *first, **last;
    int busy, closed;
    /* What is enqueued becomes a part of it instead of running. */
    Graph *capturing;
};

static int live_streams, live_events;

int fake_streams(void) { return live_streams; }

int fake_events(void) { return live_events; }

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void carry_out_copy(Context *context, const Copy *copy) {
    for (size_t row = 0; row < copy->count; row++) {
        uint64_t from = copy->from + row * copy->from_pitch;
        uint64_t to = copy->to + row * copy->to_pitch;
        if ((copy->reads_device && !is_reached(context, from, copy->bytes))
            || (copy->writes_device && !is_reached(context, to, copy->bytes))) {
            context->lost = ILLEGAL_ADDRESS;
            return;
        }
        memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, copy->bytes);
    }
}

/* Carries out a command while the lock is held. */
static void carry_out(Stream *stream, Command *command) {
    Context *context = stream->context;
    int works = !context->lost && stream->generation == context->generation;
    switch (command->kind) {
    case COPY:
        if (works)
            carry_out_copy(context, &command->copy);
        break;
    case LAUNCH:
        if (works)
            command->kernel(&command->launch);
        release_arguments(&command->launch);
        break;
    case GRAPH:
        carry_out_graph(command->graph, command->number, works, stream->generation);
        break;
    case RECORD:
        if (command->event->reached < command->record) {
            command->event->reached = command->record;
            command->event->nanoseconds = now();
        }
        break;
    case WAIT:
        while (command->event->reached < command->record && !command->event->context->lost)
            pthread_cond_wait(&changed, &lock);
        break;
    case CALL:
        if (works) {
            pthread_mutex_unlock(&lock);
            command->function(command->data);
            pthread_mutex_lock(&lock);
        }
        break;
    }
}

static void *work(void *argument) {
    Stream *stream = argument;
    unsigned seed = (unsigned)(uintptr_t)stream;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!stream->first && !stream->closed)
            pthread_cond_wait(&changed, &lock);
        Command *command = stream->first;
        if (!command)
            break;
        pthread_mutex_unlock(&lock);
        usleep((unsigned)rand_r(&seed) % 150);
        pthread_mutex_lock(&lock);
        carry_out(stream, command);
        stream->first = command->next;
        if (!stream->first)
            stream->last = &stream->first;
        stream->busy--;
        stream->context->busy--;
        free(command);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    free(stream);
    return NULL;
}

int cuStreamCreate(Stream **made, unsigned flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    Context *context = current_context();
    int code = fault("cuStreamCreate", context);
    if (code == SUCCESS) {
        Stream *stream = calloc(1, sizeof *stream);
        pthread_t thread;
        stream->context = context;
        stream->generation = context->generation;
        stream->last = &stream->first;
        pthread_create(&thread, NULL, work, stream);
        pthread_detach(thread);
        live_streams++;
        *made = stream;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

int cuStreamDestroy_v2(Stream *stream) {
    pthread_mutex_lock(&lock);
    stream->closed = 1;
    live_streams--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int cuStreamSynchronize(Stream *stream) {
    pthread_mutex_lock(&lock);
    while (stream->busy > 0)
        pthread_cond_wait(&changed, &lock);
    int code = fault("cuStreamSynchronize", stream->context);
    pthread_mutex_unlock(&lock);
    return code;
}

/* Enqueues while the lock is held. */
static void enqueue(Stream *stream, Command like) {
    Command *command = malloc(sizeof *command);
    *command = like;
    command->next = NULL;
    *stream->last = command;
    stream->last = &command->next;
    stream->busy++;
    stream->context->busy++;
    pthread_cond_broadcast(&changed);
}

void enqueue_computation(Stream *stream, Kernel kernel, const void *arguments, size_t bytes) {
    Command command = {.kind = LAUNCH, .kernel = kernel};
    command.launch.context = stream->context;
    command.launch.generation = stream->generation;
    command.launch.arguments[0] = malloc(bytes);
    memcpy(command.launch.arguments[0], arguments, bytes);
    pthread_mutex_lock(&lock);
    if (stream->capturing)
        capture(stream->capturing, kernel, &command.launch);
    else
        enqueue(stream, command);
    pthread_mutex_unlock(&lock);
}

int cuStreamBeginCapture_v2(Stream *stream, unsigned mode) {
    (void)mode;
    pthread_mutex_lock(&lock);
    int code = fault("cuStreamBeginCapture", stream->context);
    if (code == SUCCESS && stream->capturing)
        code = INVALID_VALUE;
    if (code == SUCCESS)
        stream->capturing = new_graph(stream->context);
    pthread_mutex_unlock(&lock);
    return code;
}

int cuStreamEndCapture(Stream *stream, Graph **made) {
    pthread_mutex_lock(&lock);
    int code = fault("cuStreamEndCapture", stream->context);
    if (!stream->capturing)
        code = INVALID_VALUE;
    if (code == SUCCESS) {
        *made = stream->capturing;
        stream->capturing = NULL;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static int enqueue_copy(const char *call, Stream *stream, Copy copy) {
    pthread_mutex_lock(&lock);
    int code = fault(call, stream->context);
    if (code == SUCCESS)
        enqueue(stream, (Command){.kind = COPY, .copy = copy});
    pthread_mutex_unlock(&lock);
    return code;
}

/* What is no device's is the host's. */
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t count, Stream *stream) {
    Copy copy = {from, to, count, count, count, 1, is_device(from), is_device(to)};
    return enqueue_copy("cuMemcpyAsync", stream, copy);
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, Stream *stream) {
    int code = cuStreamSynchronize(stream);
    pthread_mutex_lock(&lock);
    code = code ? code : fault("cuMemsetD8Async", stream->context);
    if (code == SUCCESS)
        memset((void *)(uintptr_t)to, value, count);
    pthread_mutex_unlock(&lock);
    return code;
}

typedef struct {
    size_t from_x, from_y;
    unsigned from_kind;
    const void *from_host;
    uint64_t from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    unsigned to_kind;
    void *to_host;
    uint64_t to_device;
    void *to_array;
    size_t to_pitch;
    size_t bytes, count;
} Rectangle;

int cuMemcpy2DAsync_v2(const Rectangle *rows, Stream *stream) {
    const unsigned unified = 4;
    if (rows->from_kind != unified || rows->to_kind != unified || rows->bytes > rows->from_pitch
        || rows->bytes > rows->to_pitch)
        return INVALID_VALUE;
    uint64_t from = rows->from_device, to = rows->to_device;
    Copy copy = {from,        to,          rows->from_pitch, rows->to_pitch,
                 rows->bytes, rows->count, is_device(from),  is_device(to)};
    return enqueue_copy("cuMemcpy2DAsync", stream, copy);
}

int has_wrong_sizes(const unsigned groups[3], const unsigned items[3]) {
    return !groups[0] || !groups[1] || !groups[2] || groups[1] > 5 || groups[2] > 5
        || items[0] * items[1] * items[2] > 256;
}

int cuLaunchKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned x,
                   unsigned y, unsigned z, unsigned local, Stream *stream, void **arguments,
                   void **extra) {
    (void)extra;
    if (has_wrong_sizes((unsigned[]){gx, gy, gz}, (unsigned[]){x, y, z}))
        return INVALID_VALUE;
    pthread_mutex_lock(&lock);
    int code = fault("cuLaunchKernel", stream->context);
    if (code == SUCCESS) {
        Command command = {.kind = LAUNCH};
        command.launch = (Launch){.context = stream->context,
                                  .generation = stream->generation,
                                  .groups = {gx, gy, gz},
                                  .items = {x, y, z},
                                  .local = local};
        command.kernel = bind_arguments(function, arguments, &command.launch);
        enqueue(stream, command);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

int cuLaunchHostFunc(Stream *stream, void (*function)(void *), void *data) {
    pthread_mutex_lock(&lock);
    int code = fault("cuLaunchHostFunc", stream->context);
    if (code == SUCCESS)
        enqueue(stream, (Command){.kind = CALL, .function = function, .data = data});
    pthread_mutex_unlock(&lock);
    return code;
}

int cuGraphLaunch(Executable *graph, Stream *stream) {
    pthread_mutex_lock(&lock);
    int code = fault("cuGraphLaunch", stream->context);
    if (code == SUCCESS)
        enqueue(stream,
                (Command){.kind = GRAPH, .graph = graph, .number = next_launch(graph)});
    pthread_mutex_unlock(&lock);
    return code;
}

int cuEventCreate(Event **made, unsigned flags) {
    pthread_mutex_lock(&lock);
    Context *context = current_context();
    int code = fault("cuEventCreate", context);
    if (code == SUCCESS) {
        Event *event = calloc(1, sizeof *event);
        event->context = context;
        event->timed = !(flags & 2);
        live_events++;
        *made = event;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* Keeps the object, so that a later use is found out. */
int cuEventDestroy_v2(Event *event) {
    pthread_mutex_lock(&lock);
    event->destroyed = 1;
    live_events--;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

static void check_alive(Event *event) {
    if (event->destroyed)
        abort();
}

int cuEventRecord(Event *event, Stream *stream) {
    pthread_mutex_lock(&lock);
    check_alive(event);
    int code = fault("cuEventRecord", stream->context);
    if (code == SUCCESS && event->context != stream->context)
        code = INVALID_CONTEXT;
    if (code == SUCCESS) {
        Command record = {.kind = RECORD, .event = event, .record = ++event->recorded};
        enqueue(stream, record);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

int cuStreamWaitEvent(Stream *stream, Event *event, unsigned flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    check_alive(event);
    int code = fault("cuStreamWaitEvent", stream->context);
    if (code == SUCCESS)
        code = event->context->lost;
    if (code == SUCCESS)
        enqueue(stream, (Command){.kind = WAIT, .event = event, .record = event->recorded});
    pthread_mutex_unlock(&lock);
    return code;
}

int cuEventQuery(Event *event) {
    pthread_mutex_lock(&lock);
    check_alive(event);
    int code = fault("cuEventQuery", event->context);
    if (code == SUCCESS && event->reached < event->recorded)
        code = NOT_READY;
    pthread_mutex_unlock(&lock);
    return code;
}

int cuEventElapsedTime(float *milliseconds, Event *from, Event *to) {
    pthread_mutex_lock(&lock);
    check_alive(from);
    check_alive(to);
    int code = fault("cuEventElapsedTime", to->context);
    if (!from->timed || !to->timed)
        code = INVALID_VALUE;
    if (code == SUCCESS && (from->reached < from->recorded || to->reached < to->recorded))
        code = NOT_READY;
    *milliseconds = (float)((double)(int64_t)(to->nanoseconds - from->nanoseconds) / 1e6);
    pthread_mutex_unlock(&lock);
    return code;
}
