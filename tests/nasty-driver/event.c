/* Events. A thread tells late that commands have ended, and calls the program back. */
#include "nasty.h"
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* What is to be reported: the end of an event, one callback of an event that has ended, or
 * the end of a buffer. */
typedef struct News {
    struct News *next;
    cl_ulong due;
    cl_event event;
    Callback *callback;
    Ending *endings;
    cl_mem mem;
} News;

static News *news, **news_end = &news;
static pthread_cond_t has_news = PTHREAD_COND_INITIALIZER;

/* Has the notifier tell it after a while. */
void notify(cl_event event, Callback *callback, cl_mem mem) {
    News *one = malloc(sizeof *one);
    *one = (News){NULL, now() + chance(4) * chance(200000), event, callback, mem ? mem->endings : NULL, mem};
    if (event)
        use(event);
    *news_end = one;
    news_end = &one->next;
    pthread_cond_signal(&has_news);
}

/* Makes the end of a command known; returns the callbacks to call. */
static Callback *completed(cl_event event) {
    cl_command_queue queue = event->queue;
    if (queue && !event->complete) {
        cl_event *at = &queue->first, before = NULL;
        for (; *at != event; at = &(*at)->next)
            before = *at;
        *at = event->next;
        if (queue->end == event)
            queue->end = before;
        drop(event);
    }
    event->complete = true;
    pthread_cond_broadcast(&changed);
    Callback *callbacks = event->callbacks;
    event->callbacks = NULL;
    return callbacks;
}

static void call(cl_event event, Callback *callbacks) {
    for (Callback *one = callbacks, *next; one; one = next) {
        next = one->next;
        one->function(event, event->status < 0 ? event->status : one->when, one->data);
        free(one);
    }
}

static void *tell(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!news)
            pthread_cond_wait(&has_news, &lock);
        News *one = news;
        cl_ulong time = now();
        if (one->due > time) {
            pthread_mutex_unlock(&lock);
            usleep((one->due - time) / 1000 + 1);
            pthread_mutex_lock(&lock);
        }
        news = one->next;
        if (!news)
            news_end = &news;
        Callback *callbacks = one->event && !one->callback ? completed(one->event) : one->callback;
        pthread_mutex_unlock(&lock);
        call(one->event, callbacks);
        for (Ending *ending = one->endings, *next; ending; ending = next) {
            next = ending->next;
            ending->function(one->mem, ending->data);
            free(ending);
        }
        pthread_mutex_lock(&lock);
        drop(one->event);
        free(one);
    }
    return NULL;
}

void start_notifier(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, tell, NULL);
    pthread_detach(thread);
}

/* Waits until the program may know that an event has ended. */
cl_int wait_until_complete(cl_event event) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 100;
    use(event);
    while (!event->complete)
        if (pthread_cond_timedwait(&changed, &lock, &end) == ETIMEDOUT)
            complain_of_wait(event);
    cl_int status = event->status;
    drop(event);
    return status;
}

void free_event(cl_event event) {
    free(event->wait);
    for (Callback *next; event->callbacks; event->callbacks = next) {
        next = event->callbacks->next;
        free(event->callbacks);
    }
    drop(event->queue);
    drop(event->context);
}

cl_int API(clWaitForEvents)(cl_uint count, const cl_event *list) {
    if (count == 0 || !list)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < count; i++) {
        cl_command_queue queue;
        {
            LOCKED;
            KNOWN(list[i], EVENT);
            queue = list[i]->queue;
        }
        if (queue && queue->object.users > 0)
            API(clFlush)(queue);
    }
    LOCKED;
    cl_int code = CL_SUCCESS;
    for (cl_uint i = 0; i < count; i++)
        if (wait_until_complete(list[i]) < 0)
            code = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    return code;
}

cl_event API(clCreateUserEvent)(cl_context context, cl_int *code) {
    LOCKED;
    KNOWN(context, CONTEXT);
    cl_event event = new_object(sizeof *event, EVENT);
    event->context = context;
    event->type = CL_COMMAND_USER;
    use(context);
    RETURN(event, CL_SUCCESS);
}

cl_int API(clSetUserEventStatus)(cl_event event, cl_int status) {
    LOCKED;
    KNOWN(event, EVENT);
    if (event->queue)
        complain("clSetUserEventStatus got the event of a command");
    if (status > CL_COMPLETE)
        return CL_INVALID_VALUE;
    if (event->ended)
        return CL_INVALID_OPERATION;
    event->ended = event->complete = true;
    event->status = status;
    pthread_cond_broadcast(&changed);
    notify(event, NULL, NULL);
    return CL_SUCCESS;
}

cl_int API(clSetEventCallback)(cl_event event, cl_int when,
                               void(CL_CALLBACK *function)(cl_event, cl_int, void *), void *data) {
    LOCKED;
    KNOWN(event, EVENT);
    if (!function || when < CL_COMPLETE || when > CL_SUBMITTED)
        return CL_INVALID_VALUE;
    Callback *callback = malloc(sizeof *callback);
    *callback = (Callback){NULL, when, function, data};
    if (event->complete) {
        notify(event, callback, NULL);
    } else {
        callback->next = event->callbacks;
        event->callbacks = callback;
    }
    return CL_SUCCESS;
}

#define VALUE(variable) return answer(&(variable), sizeof(variable), size, value, needed)

cl_int API(clGetEventInfo)(cl_event event, cl_event_info what, size_t size, void *value, size_t *needed) {
    LOCKED;
    KNOWN(event, EVENT);
    cl_int status = event->complete ? event->status : event->flushed || !event->queue ? CL_SUBMITTED : CL_QUEUED;
    if (event->started && !event->complete)
        status = CL_RUNNING;
    switch (what) {
    case CL_EVENT_COMMAND_QUEUE: VALUE(event->queue);
    case CL_EVENT_CONTEXT: VALUE(event->context);
    case CL_EVENT_COMMAND_TYPE: VALUE(event->type);
    case CL_EVENT_COMMAND_EXECUTION_STATUS: VALUE(status);
    case CL_EVENT_REFERENCE_COUNT: VALUE(event->object.users);
    default: return CL_INVALID_VALUE;
    }
}

cl_int API(clGetEventProfilingInfo)(cl_event event, cl_profiling_info what, size_t size, void *value,
                                    size_t *needed) {
    LOCKED;
    KNOWN(event, EVENT);
    if (!event->queue || !event->complete || event->status < 0 ||
        !(event->queue->properties & CL_QUEUE_PROFILING_ENABLE))
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    if (what < CL_PROFILING_COMMAND_QUEUED || what > CL_PROFILING_COMMAND_END)
        return CL_INVALID_VALUE;
    VALUE(event->times[what - CL_PROFILING_COMMAND_QUEUED]);
}
