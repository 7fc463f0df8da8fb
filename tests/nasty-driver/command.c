/* Queues and their commands. Each queue has a thread, which runs one command at a time: of
 * those that may begin, any. */
#include "nasty.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cl_command_queue queues;

static bool in_order(cl_command_queue queue) {
    return !(queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

static bool can_start(cl_event event) {
    if (event->started || !event->flushed)
        return false;
    for (cl_uint i = 0; i < event->waits; i++)
        if (!event->wait[i]->ended)
            return false;
    return true;
}

/* One of the commands that can start. */
static cl_event pick(cl_command_queue queue) {
    cl_event picked = NULL;
    unsigned found = 0;
    for (cl_event event = queue->first; event; event = event->next) {
        if (can_start(event) && chance(++found) == 0)
            picked = event;
        if (in_order(queue) && !event->ended)
            break;
    }
    return picked;
}

/* Forgets a command that others would have to wait for. */
static void forget(cl_event *kept, cl_event event) {
    if (*kept == event) {
        *kept = NULL;
        drop(event);
    }
}

static void run(cl_event event) {
    event->times[2] = now();
    for (cl_uint i = 0; i < event->listed; i++)
        if (event->wait[i]->status < 0)
            event->status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    Work *work = &event->work;
    if (event->status == CL_SUCCESS) {
        if (work->kernel)
            event->status = run_kernel(event);
        else if (work->map)
            run_map(event);
        else if (work->pattern)
            run_fill(event);
        else if (work->region[0])
            run_transfer(event);
    }
    event->times[3] = now();
    event->ended = true;
    for (cl_uint i = 0; i < event->waits; i++)
        drop(event->wait[i]);
    event->waits = event->listed = 0;
    if (event->type == CL_COMMAND_UNMAP_MEM_OBJECT)
        free(work->map);
    free_work(work);
    forget(&event->queue->last, event);
    forget(&event->queue->barrier, event);
    pthread_cond_broadcast(&changed);
    notify(event, NULL, NULL);
}

static void *work_on(void *data) {
    cl_command_queue queue = data;
    pthread_mutex_lock(&lock);
    while (queue->object.users + queue->object.uses > 0) {
        cl_event event = pick(queue);
        if (!event) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        event->started = true;
        unsigned late = chance(3) ? chance(2) * chance(100) : chance(1000);
        if (late > 0) {
            pthread_mutex_unlock(&lock);
            usleep(late);
            pthread_mutex_lock(&lock);
        }
        run(event);
    }
    cl_command_queue *at = &queues;
    while (*at != queue)
        at = &(*at)->next;
    *at = queue->next;
    drop(queue->context);
    drop(queue->device);
    bury(queue);
    pthread_mutex_unlock(&lock);
    return NULL;
}

cl_command_queue API(clCreateCommandQueue)(cl_context context, cl_device_id device,
                                           cl_command_queue_properties properties, cl_int *code) {
    LOCKED;
    KNOWN(context, CONTEXT);
    KNOWN(device, DEVICE);
    bool found = false;
    for (cl_uint i = 0; i < context->count; i++)
        found |= context->devices[i] == device;
    if (!found)
        complain("a queue is wanted of a device that is not in its context");
    cl_command_queue queue = new_object(sizeof *queue, QUEUE);
    queue->context = context;
    queue->device = device;
    queue->properties = properties;
    queue->next = queues;
    queues = queue;
    use(context);
    use(device);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work_on, queue))
        complain("no thread for a queue");
    pthread_detach(thread);
    RETURN(queue, CL_SUCCESS);
}

cl_int API(clGetCommandQueueInfo)(cl_command_queue queue, cl_command_queue_info what, size_t size, void *value,
                                  size_t *needed) {
    LOCKED;
    KNOWN(queue, QUEUE);
#define VALUE(variable) return answer(&(variable), sizeof(variable), size, value, needed)
    switch (what) {
    case CL_QUEUE_CONTEXT: VALUE(queue->context);
    case CL_QUEUE_DEVICE: VALUE(queue->device);
    case CL_QUEUE_REFERENCE_COUNT: VALUE(queue->object.users);
    case CL_QUEUE_PROPERTIES: VALUE(queue->properties);
    default: return CL_INVALID_VALUE;
    }
}

static void flush(cl_command_queue queue) {
    for (cl_event event = queue->first; event; event = event->next)
        if (!event->flushed) {
            event->flushed = true;
            event->times[1] = now();
        }
    pthread_cond_broadcast(&changed);
}

cl_int API(clFlush)(cl_command_queue queue) {
    LOCKED;
    flush(KNOWN(queue, QUEUE));
    return CL_SUCCESS;
}

cl_int API(clFinish)(cl_command_queue queue) {
    LOCKED;
    flush(KNOWN(queue, QUEUE));
    use(queue);
    cl_ulong last = queue->numbers;
    while (queue->first && queue->first->number <= last)
        wait_until_complete(queue->first);
    drop(queue);
    return CL_SUCCESS;
}

static void wait_for(cl_event event, cl_event other) {
    event->wait = realloc(event->wait, (event->waits + 1) * sizeof *event->wait);
    event->wait[event->waits++] = other;
    use(other);
}

static void keep(cl_event *kept, cl_event event) {
    drop(*kept);
    *kept = event;
    use(event);
}

/* Puts a command into a queue. It owns what its work uses from now on. */
cl_int enqueue(cl_command_queue queue, cl_command_type type, Work *work, cl_uint count, const cl_event *list,
               cl_bool blocking, cl_event *out) {
    if ((count == 0) != !list)
        return CL_INVALID_EVENT_WAIT_LIST;
    cl_mem mems[2] = {work->from.mem, work->to.mem};
    for (int i = 0; i < 2; i++)
        if (mems[i] && mems[i]->context != queue->context)
            complain("a command uses a buffer of another context");
    cl_event event = new_object(sizeof *event, EVENT);
    for (cl_uint i = 0; i < count; i++) {
        cl_event other = KNOWN(list[i], EVENT);
        if (other->context != queue->context)
            complain("a wait list has an event of another context");
        wait_for(event, other);
    }
    event->listed = count;
    event->context = queue->context;
    event->queue = queue;
    event->type = type;
    event->number = ++queue->numbers;
    event->times[0] = now();
    event->work = *work;
    use(queue->context);
    use(queue);
    if (work->kernel)
        use(work->kernel);
    for (int i = 0; i < 2; i++)
        if (mems[i])
            use(mems[i]);
    bool joins = (type == CL_COMMAND_BARRIER || type == CL_COMMAND_MARKER) && count == 0;
    if (in_order(queue)) {
        if (queue->last)
            wait_for(event, queue->last);
    } else {
        if (queue->barrier)
            wait_for(event, queue->barrier);
        for (cl_event other = queue->first; other && joins; other = other->next)
            if (!other->ended)
                wait_for(event, other);
        if (type == CL_COMMAND_BARRIER)
            keep(&queue->barrier, event);
    }
    keep(&queue->last, event);
    *(queue->end ? &queue->end->next : &queue->first) = event;
    queue->end = event;
    event->object.users = out ? 1 : 0;
    event->object.uses++;
    if (out)
        *out = event;
    if (!blocking)
        return CL_SUCCESS;
    flush(queue);
    return wait_until_complete(event) < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}

/* Commands without work. */

static cl_int synchronise(cl_command_queue queue, cl_command_type type, cl_uint count, const cl_event *list,
                          cl_event *event) {
    Work none = {0};
    return enqueue(queue, type, &none, count, list, CL_FALSE, event);
}

cl_int API(clEnqueueMarkerWithWaitList)(cl_command_queue queue, cl_uint count, const cl_event *list,
                                        cl_event *event) {
    LOCKED;
    return synchronise(KNOWN(queue, QUEUE), CL_COMMAND_MARKER, count, list, event);
}

cl_int API(clEnqueueBarrierWithWaitList)(cl_command_queue queue, cl_uint count, const cl_event *list,
                                         cl_event *event) {
    LOCKED;
    return synchronise(KNOWN(queue, QUEUE), CL_COMMAND_BARRIER, count, list, event);
}

cl_int API(clEnqueueMarker)(cl_command_queue queue, cl_event *event) {
    return API(clEnqueueMarkerWithWaitList)(queue, 0, NULL, event);
}

cl_int API(clEnqueueBarrier)(cl_command_queue queue) {
    return API(clEnqueueBarrierWithWaitList)(queue, 0, NULL, NULL);
}

cl_int API(clEnqueueWaitForEvents)(cl_command_queue queue, cl_uint count, const cl_event *list) {
    return API(clEnqueueBarrierWithWaitList)(queue, count, list, NULL);
}

/* Bytes come to a device when a command there uses them, so this moves none. */
cl_int API(clEnqueueMigrateMemObjects)(cl_command_queue queue, cl_uint number, const cl_mem *mems,
                                       cl_mem_migration_flags flags, cl_uint count, const cl_event *list,
                                       cl_event *event) {
    (void)flags;
    LOCKED;
    for (cl_uint i = 0; i < number; i++)
        KNOWN(mems[i], MEM);
    return synchronise(KNOWN(queue, QUEUE), CL_COMMAND_MIGRATE_MEM_OBJECTS, count, list, event);
}

/* The first of the commands that an event waits for, and those wait for. */
static cl_event blocker(cl_event event) {
    for (cl_uint i = 0; i < event->waits; i++)
        if (!event->wait[i]->ended)
            return blocker(event->wait[i]);
    return event;
}

void complain_of_wait(cl_event event) {
    cl_event first = blocker(event);
    const char *why = !first->queue ? "a user event that nobody sets"
                      : !first->flushed ? "a command whose queue nobody flushes" : "a command that runs";
    complain("a command of type %#x has not ended after 100 s: it waits for %s (type %#x)", event->type, why,
             first->type);
}

/* At the program's end: commands that wait for a user event that nobody sets any more. */
void complain_of_endless_commands(void) {
    for (cl_command_queue queue = queues; queue; queue = queue->next)
        for (cl_event event = queue->first; event; event = event->next)
            if (!event->ended && !blocker(event)->queue)
                complain("a command of type %#x waits for a user event at the program's end", event->type);
}
