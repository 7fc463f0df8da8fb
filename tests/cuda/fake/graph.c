/* Graphs: kernels and what libraries compute, with precedences. A kernel that the graph has later runs first where
 * precedences allow it, so that a missing one is found out. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODES = 64 };

typedef struct Node {
    Kernel kernel;
    Launch launch;
    /* Indices of the nodes that it comes after. */
    size_t count, after[NODES];
} Node;

struct Graph {
    Context *context;
    size_t count;
    Node *nodes[NODES];
};

struct Executable {
    Graph graph;
    int destroyed;
    /* Launches that were enqueued, and those that have ended. */
    uint64_t launched, ended;
};

typedef struct {
    Function *function;
    unsigned groups[3], items[3], local;
    void **arguments, **extra;
    void *kernel;
    Context *context;
} Parameters;

static int live;

int fake_graphs(void) { return live; }

Graph *new_graph(Context *context) {
    Graph *graph = calloc(1, sizeof *graph);
    graph->context = context;
    live++;
    return graph;
}

int capture(Graph *graph, Kernel kernel, const Launch *launch) {
    if (graph->count == NODES)
        return INVALID_VALUE;
    Node *node = calloc(1, sizeof *node);
    node->kernel = kernel;
    node->launch = *launch;
    if (graph->count) {
        node->count = 1;
        node->after[0] = graph->count - 1;
    }
    graph->nodes[graph->count++] = node;
    return SUCCESS;
}

int cuGraphCreate(Graph **made, unsigned flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    int code = fault("cuGraphCreate", current_context());
    if (code == SUCCESS)
        *made = new_graph(current_context());
    pthread_mutex_unlock(&lock);
    return code;
}

static size_t index_of(const Graph *graph, const Node *node) {
    size_t index = 0;
    while (index < graph->count && graph->nodes[index] != node)
        index++;
    return index;
}

static int find_nodes(const Graph *graph, Node *const *nodes, size_t count, size_t *found) {
    for (size_t i = 0; i < count; i++) {
        found[i] = index_of(graph, nodes[i]);
        if (found[i] == graph->count)
            return INVALID_VALUE;
        for (size_t j = 0; j < i; j++)
            if (found[j] == found[i])
                return INVALID_VALUE;
    }
    return SUCCESS;
}

int cuGraphAddKernelNode_v2(Node **made, Graph *graph, Node *const *after, size_t count,
                            const Parameters *wanted) {
    pthread_mutex_lock(&lock);
    int code = fault("cuGraphAddKernelNode", current_context());
    if (graph->count == NODES || has_wrong_sizes(wanted->groups, wanted->items))
        code = INVALID_VALUE;
    Node *node = calloc(1, sizeof *node);
    if (code == SUCCESS)
        code = find_nodes(graph, after, count, node->after);
    if (code == SUCCESS) {
        node->count = count;
        node->launch = (Launch){.context = graph->context, .local = wanted->local};
        memcpy(node->launch.groups, wanted->groups, sizeof wanted->groups);
        memcpy(node->launch.items, wanted->items, sizeof wanted->items);
        node->kernel = bind_arguments(wanted->function, wanted->arguments, &node->launch);
        graph->nodes[graph->count++] = *made = node;
    } else {
        free(node);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* The nodes, which follow one another, are the graph's own from now on. */
int cuGraphAddChildGraphNode(Node **made, Graph *graph, Node *const *after, size_t count,
                             Graph *child) {
    pthread_mutex_lock(&lock);
    int code = fault("cuGraphAddChildGraphNode", current_context());
    size_t found[NODES];
    if (!child->count || graph->count + child->count > NODES)
        code = INVALID_VALUE;
    if (code == SUCCESS)
        code = find_nodes(graph, after, count, found);
    for (size_t i = 0; code == SUCCESS && i < child->count; i++) {
        Node *node = *made = child->nodes[i];
        if (i) {
            node->after[0] = graph->count - 1;
        } else {
            node->count = count;
            memcpy(node->after, found, count * sizeof *found);
        }
        graph->nodes[graph->count++] = node;
    }
    if (code == SUCCESS)
        child->count = 0;
    pthread_mutex_unlock(&lock);
    return code;
}

static void release_nodes(Graph *graph) {
    for (size_t i = 0; i < graph->count; i++) {
        release_arguments(&graph->nodes[i]->launch);
        free(graph->nodes[i]);
    }
}

int cuGraphDestroy(Graph *graph) {
    pthread_mutex_lock(&lock);
    release_nodes(graph);
    free(graph);
    live--;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int cuGraphInstantiateWithFlags(Executable **made, Graph *graph, uint64_t flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    int code = fault("cuGraphInstantiateWithFlags", current_context());
    if (code == SUCCESS) {
        Executable *whole = *made = calloc(1, sizeof *whole);
        /* The nodes are its own from now on. */
        whole->graph = *graph;
        graph->count = 0;
        live++;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* Keeps the object, so that a later use is found out. */
int cuGraphExecDestroy(Executable *graph) {
    pthread_mutex_lock(&lock);
    graph->destroyed = 1;
    live--;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

uint64_t next_launch(Executable *graph) {
    if (graph->destroyed)
        abort();
    return graph->launched++;
}

/* The last node that may run; the count of nodes if all have. */
static size_t next_node(const Graph *graph, const int *done) {
    for (size_t i = graph->count; i-- > 0;) {
        int ready = !done[i];
        for (size_t j = 0; ready && j < graph->nodes[i]->count; j++)
            ready = done[graph->nodes[i]->after[j]];
        if (ready)
            return i;
    }
    return graph->count;
}

void carry_out_graph(Executable *graph, uint64_t number, int works, uint64_t generation) {
    int done[NODES] = {0};
    Context *context = graph->graph.context;
    while (graph->ended < number)
        pthread_cond_wait(&changed, &lock);
    if (works && graph->destroyed)
        abort();
    for (;;) {
        size_t next = next_node(&graph->graph, done);
        if (next == graph->graph.count || !works || context->lost)
            break;
        Node *node = graph->graph.nodes[next];
        node->launch.generation = generation;
        node->kernel(&node->launch);
        done[next] = 1;
        /* Other streams come in between. */
        pthread_mutex_unlock(&lock);
        usleep(20);
        pthread_mutex_lock(&lock);
    }
    graph->ended++;
    pthread_cond_broadcast(&changed);
}
