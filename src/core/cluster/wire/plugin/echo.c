/* A wire for tests: rank 0 of two. The other rank sends everything back. Definitions make
 * it fail in one way each. */
#include <stdlib.h>
#include <string.h>

#include "pdawl_wire.h"

#ifndef PDAWL_WIRE_VERSION_OF_LIBRARY
#define PDAWL_WIRE_VERSION_OF_LIBRARY PDAWL_WIRE_VERSION
#endif
#ifndef OTHER
#define OTHER 1
#endif

typedef struct message {
    uint32_t channel;
    pdawl_wire_buffer buffer;
    struct message *next;
} message;

static pdawl_wire_host host;
static message *first, **last = &first;
static uint64_t waiting;
static int lost, reported;

static int fail(const char *why)
{
    host.explain(host.context, why);
    return PDAWL_WIRE_FAILED;
}

static int echo_send(void *wire, uint32_t to, uint32_t channel, const pdawl_wire_buffer *buffer)
{
    message *sent = malloc(sizeof *sent);
    if (wire != &host || to != 1 || !sent)
        return fail("a wrong argument");
    *sent = (message){channel, *buffer, NULL};
    *last = sent;
    last = &sent->next;
    waiting++;
    return PDAWL_WIRE_OK;
}

static int echo_poll(void *wire, pdawl_wire_arrival *arrival)
{
    message *sent = first;
    (void)wire;
#ifdef FAIL
    return reported++ ? PDAWL_WIRE_FAILED : fail("the cable is cut");
#endif
#ifdef LOSE
    if (!reported++) {
        host.explain(host.context, "gone for good");
        arrival->kind = PDAWL_WIRE_LOST;
        arrival->rank = 1;
        return PDAWL_WIRE_OK;
    }
#endif
    if (!sent)
        return PDAWL_WIRE_OK;
    /* One byte too many is allocated, and the size says so. */
    if (host.allocate(host.context, sent->buffer.size + 1, &arrival->buffer))
        return fail("no memory");
    memcpy(arrival->buffer.bytes, sent->buffer.bytes, sent->buffer.size);
    arrival->buffer.size = sent->buffer.size;
    arrival->kind = PDAWL_WIRE_MESSAGE;
    arrival->rank = OTHER;
    arrival->channel = sent->channel;
    host.release(host.context, sent->buffer.owner);
    first = sent->next;
    if (!first)
        last = &first;
    free(sent);
    waiting--;
    return PDAWL_WIRE_OK;
}

static uint64_t echo_unsent(void *wire)
{
    (void)wire;
    return lost ? 0 : waiting;
}

/* Messages arrive whole. */
static uint64_t echo_receiving(void *wire)
{
    (void)wire;
    return 0;
}

#ifndef WITHOUT_LOSE
static void echo_lose(void *wire, uint32_t rank)
{
    (void)wire;
    lost |= rank == 1;
}
#endif

static int echo_close(void *wire, int complete)
{
    (void)wire;
    return complete && waiting ? fail("a message is left") : PDAWL_WIRE_OK;
}

int pdawl_wire_open(uint32_t version, const pdawl_wire_host *given, pdawl_wire_table *table)
{
    if (version != PDAWL_WIRE_VERSION_OF_LIBRARY)
        return PDAWL_WIRE_OTHER_VERSION;
    host = *given;
    (void)reported;
#ifdef REFUSE
    return fail("nobody is there");
#endif
    table->wire = &host;
    table->rank = 0;
    table->ranks = 2;
    table->host_name = "echo";
    table->send = echo_send;
    table->poll = echo_poll;
    table->unsent = echo_unsent;
    table->receiving = echo_receiving;
#ifndef WITHOUT_LOSE
    table->lose = echo_lose;
#endif
    table->close = echo_close;
    return PDAWL_WIRE_OK;
}
