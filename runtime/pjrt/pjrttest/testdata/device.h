// The double's objects, the thread that is its device, and its programs.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char mode[32]; // the fault
static bool is(const char *name) { return strcmp(mode, name) == 0; }

static void die(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("pjrt double: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    abort();
}

// Objects are never freed, so that a use after their end is seen.
enum { ERROR = 1, CLIENT, DEVICE, LOADED, EXECUTABLE, SERIALIZED, BUFFER, EVENT, REGION, KINDS };
static const char *kinds[] = {"", "error", "client", "device", "loaded executable", "executable", "serialized executable", "buffer",
    "event", "pinned region"};
#define MAGIC(kind) (0x5354303045000000ull + (kind))
#define ENDED(kind) (0xdead000000000000ull + (kind))
typedef struct { _Atomic uint64_t magic; struct Client *client; } Object;

static void *check(void *p, int kind) {
    if (!p) die("no %s is given", kinds[kind]);
    uint64_t magic = ((Object *)p)->magic;
    if (magic == ENDED(kind)) die("a %s is used after it was destroyed", kinds[kind]);
    if (magic != MAGIC(kind)) die("a %s is expected, and another object is given", kinds[kind]);
    return p;
}

typedef struct { Object object; int code; char message[300]; } Error;
static atomic_long errors;
long double_errors(void) { return errors; } // for tests: the errors that nobody has freed

static Error *fail(int code, const char *format, ...) {
    Error *e = calloc(1, sizeof *e);
    e->object.magic = MAGIC(ERROR);
    e->code = code;
    va_list list;
    va_start(list, format);
    vsnprintf(e->message, sizeof e->message, format, list);
    errors++;
    return e;
}

// Future is a result that comes: shared by events, buffers and tasks.
typedef struct Waiter { void (*call)(Error *, void *); void *argument; struct Waiter *next; } Waiter;
typedef struct { pthread_mutex_t lock; pthread_cond_t changed; atomic_int references; bool done; int code; char *message;
    Waiter *waiters; } Future;

static Future *new_future(void) {
    Future *f = calloc(1, sizeof *f);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    f->references = 1;
    return f;
}
static Future *share(Future *f) { f->references++; return f; }
static void drop(Future *f) { if (--f->references == 0) free(f); }
static Error *result(Future *f) { return f->code ? fail(f->code, "%s", f->message) : NULL; }
static void finish(Future *f, int code, char *message) {
    pthread_mutex_lock(&f->lock);
    f->done = true, f->code = code, f->message = message;
    Waiter *w = f->waiters;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    for (; w; w = w->next) w->call(result(f), w->argument);
}

typedef struct { Object object; Future *future; } Event;
typedef struct { atomic_int references; size_t size; char bytes[]; } Data;
typedef struct { int64_t type, dims, dim[8]; } Shape;
typedef struct { Object object; _Atomic bool deleted; int type; size_t size, dims; int64_t dim[8]; Data *data; Future *ready; } Buffer;
typedef struct { Object object; int program; size_t length; char options[1024]; } Loaded;
typedef struct Task {
    int program; // or an upload or a download
    char *host;
    size_t size;
    Future *future;
    int inputs, outputs;
    Buffer **in, **out;
    Data **hold, **to;
    Future **wait, **ready;
    int failed; // the code of a run that does not fit, with its message
    char options[1024];
    struct Task *next;
} Task;
typedef struct Client {
    Object object, device;
    Object *devices[1];
    atomic_long live[KINDS], used;
    long limit;
    void *regions[64];
    char version[200];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Task *head, **tail;
    bool ended;
} Client;

static void *begin(size_t size, int kind, Client *c) {
    Object *o = calloc(1, size);
    o->magic = MAGIC(kind), o->client = c;
    c->live[kind]++;
    return o;
}
static void *end(void *p, int kind) {
    uint64_t whole = MAGIC(kind);
    if (p && ((Object *)p)->magic == ENDED(kind)) die("a %s is destroyed twice", kinds[kind]);
    check(p, kind);
    if (!atomic_compare_exchange_strong(&((Object *)p)->magic, &whole, ENDED(kind))) die("a %s is destroyed twice", kinds[kind]);
    if (((Object *)p)->client) ((Object *)p)->client->live[kind]--;
    return p;
}
static Event *new_event(Client *c, Future *f) {
    Event *e = begin(sizeof *e, EVENT, c);
    e->future = share(f);
    return e;
}
static Data *new_data(Client *c, size_t size) {
    Data *d = calloc(1, sizeof *d + size);
    d->references = 1, d->size = size;
    c->used += size;
    return d;
}
static void drop_data(Client *c, Data *d) { if (--d->references == 0) { c->used -= d->size; memset(d->bytes, 0xdd, d->size); free(d); } }
static Buffer *new_buffer(Client *c, int type, size_t size, const int64_t *dim, size_t dims) {
    Buffer *b = begin(sizeof *b, BUFFER, c);
    b->type = type, b->size = size, b->dims = dims;
    memcpy(b->dim, dim, dims * sizeof *dim);
    b->data = new_data(c, size), b->ready = new_future();
    return b;
}

// Programs.
enum { UPLOAD = -2, DOWNLOAD = -1, ADD, ADDTO, BOTH, EXHAUST, SLOW, OPTIONS, EXP, PRODUCT, CONVOLUTION };
static const struct { const char *name; int inputs, outputs, donated; } programs[] = {
    {"double:add ", 2, 1, -1}, {"double:addto ", 2, 1, 0}, {"double:both ", 2, 2, -1}, {"double:exhaust ", 1, 1, -1}, {"double:slow ",
        1, 1, -1},
    {"double:options ", 0, 1, -1}, {"check_exp ", 1, 1, -1}, {"check_product ", 2, 1, -1}, {"check_convolution ", 2, 1, -1}};

// Texts that are none of these are the test's, where it has called double_interpret: prepare parses one and writes the number of inputs,
// the number of outputs, the bytes that a run needs beside them, a Shape of each, and for each input whether it is donated; it returns the
// program's number, or -1 and a message. run computes one run; other than 0 it returns with a message.
enum { OTHERS = 1000, MOST = 1000, ROOM = 1 << 16 };
typedef int64_t Prepare(const char *text, int64_t length, int64_t *answer, int64_t room);
typedef int64_t Run(int64_t program, char **inputs, char **outputs, char *message, int64_t room);
static Prepare *prepare_text;
static Run *run_program;
void double_interpret(Prepare *prepare, Run *run) { prepare_text = prepare, run_program = run; }

typedef struct { int64_t inputs, outputs, temporary; Shape shapes[]; } Other; // and the donated behind the shapes
static Other *others[MOST];
static Other *other_of(int program) { return program < OTHERS ? NULL : others[program - OTHERS]; }
static bool is_donated(Other *o, int i) { return ((int64_t *)(o->shapes + o->inputs + o->outputs))[i]; }
static const int sizes[] = {[1] = 1, [4] = 4, [5] = 8, [6] = 1, [8] = 4, [9] = 8, [11] = 4, [12] = 8, [13] = 2}; // by type
static size_t size_of(const Shape *s) {
    size_t size = sizes[s->type];
    for (int64_t i = 0; i < s->dims; i++) size *= s->dim[i];
    return size;
}
// prepare_other returns the number of a program of the test's.
static int prepare_other(const char *text, size_t length, Error **failed) {
    int64_t *answer = calloc(ROOM, sizeof *answer);
    int64_t number = prepare_text(text, length, answer, ROOM);
    if (number < 0 || number >= MOST) {
        *failed = fail(2, "MLIR: error: %.*s", 250, (char *)answer), free(answer);
        return -1;
    }
    others[number] = (Other *)answer;
    return OTHERS + number;
}

static Task *new_task(int program, int inputs, int outputs) {
    Task *t = calloc(1, sizeof *t);
    size_t ins = inputs + 2, outs = outputs + 2; // the double's own programs look at two
    t->program = program, t->inputs = inputs, t->outputs = outputs;
    t->in = calloc(ins, sizeof *t->in), t->hold = calloc(ins, sizeof *t->hold), t->wait = calloc(ins, sizeof *t->wait);
    t->out = calloc(outs, sizeof *t->out), t->to = calloc(outs, sizeof *t->to), t->ready = calloc(outs, sizeof *t->ready);
    return t;
}
static void free_task(Task *t) {
    free(t->in), free(t->hold), free(t->wait), free(t->out), free(t->to), free(t->ready);
    free(t);
}

static void compute(Task *t) {
    float *x = t->hold[0] ? (float *)t->hold[0]->bytes : NULL, *y = t->hold[1] ? (float *)t->hold[1]->bytes : NULL,
        *z = (float *)t->to[0]->bytes;
    size_t n = t->to[0]->size / 4;
    const int64_t *d = t->in[0] ? t->in[0]->dim : NULL, *k = t->in[1] ? t->in[1]->dim : NULL;
    if (t->program == SLOW) usleep(20000), memcpy(z, x, n * 4);
    if (t->program == OPTIONS) memcpy(z, t->options, sizeof t->options);
    if (t->program == ADD || t->program == ADDTO || t->program == BOTH)
        for (size_t i = 0; i < n; i++) z[i] = x[i] + y[i];
    if (t->program == BOTH)
        for (size_t i = 0; i < n; i++) ((float *)t->to[1]->bytes)[i] = x[i] - y[i];
    if (t->program == EXP)
        for (size_t i = 0; i < n; i++) z[i] = expf(x[i]);
    if (t->program == PRODUCT) // [m,l] × [l,n]
        for (int64_t i = 0; i < d[0] * k[1]; i++)
            for (int64_t j = 0; j < d[1]; j++) z[i] += x[i / k[1] * d[1] + j] * y[j * k[1] + i % k[1]];
    if (t->program == CONVOLUTION) // NHWC × HWIO with stride 1 and edges padded by half of the kernel
        for (int64_t i = 0; i < (int64_t)n; i++) {
            int64_t o = i % k[3], w = i / k[3] % d[2], h = i / k[3] / d[2] % d[1], b = i / k[3] / d[2] / d[1];
            for (int64_t a = 0; a < k[0]; a++)
                for (int64_t e = 0; e < k[1]; e++) {
                    int64_t r = h + a - k[0] / 2, s = w + e - k[1] / 2;
                    for (int64_t c = 0; c < d[3] && r >= 0 && r < d[1] && s >= 0 && s < d[2]; c++)
                        z[i] += x[((b * d[1] + r) * d[2] + s) * d[3] + c] * y[((a * k[1] + e) * d[3] + c) * k[3] + o];
                }
        }
    if (is("wrong") && t->program == CONVOLUTION) z[n / 2] *= 1.01f;
}

// interpret gives a run to the test. A message is never freed: events may name it for ever.
static void interpret(Task *t, int *code, char **message) {
    char **in = calloc(t->inputs + 1, sizeof *in), **out = calloc(t->outputs + 1, sizeof *out), text[300] = "";
    for (int i = 0; i < t->inputs; i++) in[i] = t->hold[i]->bytes;
    for (int i = 0; i < t->outputs; i++) out[i] = t->to[i]->bytes;
    if (run_program(t->program - OTHERS, in, out, text, sizeof text)) *code = 13, *message = strdup(text);
    free(in), free(out);
}

static void perform(Client *c, Task *t) {
    int code = 0;
    char *message = NULL;
    for (int i = 0; i < t->inputs; i++)
        if (t->wait[i]->code) code = t->wait[i]->code, message = t->wait[i]->message;
    if (t->program < 0) usleep(200); // late, so that memory which is freed too early is seen
    if (t->program == EXHAUST) code = 8, message = "Out of memory while trying to allocate 4.16GiB.";
    if (t->program == UPLOAD) memcpy(t->to[0]->bytes, t->host, t->size);
    if (t->program == DOWNLOAD && !code) memcpy(t->host, t->hold[0]->bytes, t->size);
    if (!code && t->failed) code = t->failed, message = "Out of memory while trying to allocate the results of a run.";
    if (t->program >= OTHERS && !code) interpret(t, &code, &message);
    if (t->program >= 0 && t->program < OTHERS && !code) compute(t);
    for (int i = 0; i < t->inputs; i++) drop_data(c, t->hold[i]), drop(t->wait[i]);
    for (int i = 0; i < t->outputs; i++) drop_data(c, t->to[i]), finish(t->ready[i], code, message), drop(t->ready[i]);
    if (t->future) finish(t->future, code, message), drop(t->future);
    free_task(t);
}
static void *work(void *argument) {
    Client *c = argument;
    for (;;) {
        pthread_mutex_lock(&c->lock);
        while (!c->head && !c->ended) pthread_cond_wait(&c->changed, &c->lock);
        Task *t = c->head;
        if (t && !(c->head = t->next)) c->tail = &c->head;
        pthread_mutex_unlock(&c->lock);
        if (!t) return NULL;
        perform(c, t);
    }
}
static void enqueue(Client *c, Task *t) {
    pthread_mutex_lock(&c->lock);
    *c->tail = t, c->tail = &t->next;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}
static void reads(Task *t, int i, Buffer *b) { t->in[i] = b, t->hold[i] = b->data, t->wait[i] = share(b->ready), b->data->references++; }
static void writes(Task *t, int i, Buffer *b) { t->out[i] = b, t->to[i] = b->data, t->ready[i] = share(b->ready), b->data->references++; }
