// A PJRT plugin without a device. It computes a few programs on a thread of its
// own, and ends the process with a message where its caller breaks a rule of the
// interface: a wrong object, an object that is used or destroyed after its end,
// objects that are left when the client is destroyed, spare bytes that are not
// zero, a function that stoke does not know.
//
// A program is chosen by a name in its text: double:NAME or check_NAME. Other
// texts are programs that the test interprets (double_interpret in device.h).
// STOKE_DOUBLE, read when the plugin is loaded, chooses a fault: short, larger,
// old, major, deviceless, wrong, clientless.
#include "device.h"

// Structs of the interface, as its header of version 0.104 describes them.
typedef struct { size_t size; void *extensions; } Head;
typedef struct { Head head; const char *name; size_t length; int type; union { const char *text; int64_t number; const int64_t *list;
    float real; bool flag; }; size_t count; } Value;
typedef struct { Head head; void *object; } One;
typedef struct { Head head; void *object, *result; } Two;
typedef struct { Head head; void *object; const void *data; size_t length; } Text;
typedef struct { Head head; Error *error; int code; } CodeArgs;
typedef struct { Head head; const Value *values; size_t count; } AttributesArgs;
typedef struct { Head head; Event *event; void (*call)(Error *, void *); void *argument; } OnReadyArgs;
typedef struct { Head head; const Value *options; size_t count; void *get, *get_argument, *put, *put_argument; Client *client;
    void *try, *try_argument; } CreateArgs;
typedef struct { Head head; const char *code; size_t length; const char *format; size_t format_length; } Program;
typedef struct { Head head; Client *client; const Program *program; const char *options; size_t length; Loaded *executable; } CompileArgs;
typedef struct { Head head; Client *client; const void *data; int type; const int64_t *dims; size_t dim_count; const int64_t *strides;
    size_t stride_count; int semantics; Object *device; void *memory, *layout; Event *done; Buffer *buffer; } UploadArgs;
typedef struct { Head head; Buffer *buffer; void *layout; char *data; size_t size; Event *event; } DownloadArgs;
typedef struct { Head head; void *send, *receive; size_t sends, receives; int launch; const int64_t *keep; size_t kept; void *context;
    const char *location; size_t tasks; int *ids; int64_t *incarnations; void *slices; } Options;
typedef struct { Head head; Loaded *executable; Options *options; Buffer *const *const *arguments; size_t devices, count;
    Buffer **const *outputs; Event **completions; Object *device; } ExecuteArgs;
typedef struct { Head head; Object *executable; const char *bytes; size_t length; Object *backing; void (*release)(Object *);
    } SerializeArgs;
typedef struct { Head head; Client *client; const char *bytes; size_t length; Loaded *executable; const char *options;
    size_t options_length; } DeserializeArgs;
typedef struct { Head head; Object *executable; int64_t code, arguments, outputs, alias, temporary, rest[10]; } CompiledArgs;
typedef struct { int64_t value; bool set; } Optional;
typedef struct { Head head; Object *device; int64_t used; Optional peak, count, largest, limit, more[6]; } MemoryArgs;
typedef struct { Head head; Client *client; void *data; size_t size; } MapArgs;
typedef struct { Head head; Buffer *buffer; bool deleted; } DeletedArgs;

#define END(type, last) (offsetof(type, last) + sizeof((type *)0)->last)
_Static_assert(END(One, object) == 24 && END(Two, result) == 32 && END(Text, length) == 40 && END(CodeArgs, code) == 28, "header");
_Static_assert(END(Value, count) == 56 && END(AttributesArgs, count) == 32 && END(OnReadyArgs, argument) == 40, "header");
_Static_assert(END(CreateArgs, try_argument) == 88 && END(Program, format_length) == 48 && END(CompileArgs, executable) == 56, "header");
_Static_assert(END(UploadArgs, buffer) == 120 && END(DownloadArgs, event) == 56 && END(DeletedArgs, deleted) == 25, "header");
_Static_assert(END(Options, slices) == 120 && END(ExecuteArgs, device) == 80 && END(SerializeArgs, release) == 56, "header");
_Static_assert(END(DeserializeArgs, options_length) == 64 && END(CompiledArgs, rest[9]) == 144, "header");
_Static_assert(END(MemoryArgs, more[5].set) == 185 && END(MapArgs, size) == 40 && END(MapArgs, data) == 32, "header");
static Error *sized(const void *args, size_t want, const char *name) {
    const Head *head = args;
    if (is("larger") && !strcmp(name, "PJRT_Client_Create_Args")) want = 400;
    if (head->size < want) return fail(3, "Unexpected %s size: expected %zu, got %zu. Check installed software versions.", name, want,
        head->size);
    for (size_t i = (want + 7) / 8 * 8; i < head->size && !is("old"); i++)
        if (((const char *)args)[i]) die("%s has %zu bytes, and byte %zu behind those of version 0.104 is not zero", name, head->size, i);
    return NULL;
}
#define SIZED(type, last, name) do { Error *e = sized(a, END(type, last), "PJRT_" name "_Args"); if (e) return e; } while (0)

static void *error_destroy(One *a) { if (a->object) end(a->object, ERROR), errors--; return NULL; }
static void *error_message(Text *a) { Error *e = check(a->object, ERROR); a->data = e->message, a->length = strlen(e->message);
    return NULL; }
static void *error_code(CodeArgs *a) { SIZED(CodeArgs, code, "Error_GetCode"); a->code = ((Error *)check(a->error, ERROR))->code;
    return NULL; }
static void *initialize(Head *a) { (void)a; return NULL; }
static void *attributes(AttributesArgs *a) {
    SIZED(AttributesArgs, count, "Plugin_Attributes");
    static const int64_t version[] = {1, 20, 0};
    static char text[2000];
    static Value list[4];
    const char *flags = getenv("XLA_FLAGS"), *level = getenv("TF_CPP_MIN_LOG_LEVEL"), *path = getenv("PATH");
    snprintf(text, sizeof text, "XLA_FLAGS=%s TF_CPP_MIN_LOG_LEVEL=%s PATH=%s", flags ? flags : "", level ? level : "", path ? path : "");
    list[0] = (Value){{sizeof(Value), NULL}, "xla_version", 11, 1, .number = 2, 1};
    list[1] = (Value){{sizeof(Value), NULL}, "stablehlo_current_version", 25, 2, .list = version, 3};
    list[2] = (Value){{sizeof(Value), NULL}, "environment", 11, 0, .text = text, strlen(text)};
    list[3] = (Value){{sizeof(Value), NULL}, "libraries", 9, 4, .flag = dlsym(RTLD_DEFAULT, "cudnnGetVersion") != NULL, 1};
    a->values = list, a->count = 4;
    return NULL;
}

static void *event_destroy(One *a) { SIZED(One, object, "Event_Destroy"); drop(((Event *)end(a->object, EVENT))->future); return NULL; }
static void *event_await(One *a) {
    SIZED(One, object, "Event_Await");
    Future *f = ((Event *)check(a->object, EVENT))->future;
    pthread_mutex_lock(&f->lock);
    while (!f->done) pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
    check(a->object, EVENT);
    return result(f);
}
static void *event_on_ready(OnReadyArgs *a) {
    SIZED(OnReadyArgs, argument, "Event_OnReady");
    Future *f = ((Event *)check(a->event, EVENT))->future;
    pthread_mutex_lock(&f->lock);
    bool done = f->done;
    Waiter *w = calloc(1, sizeof *w);
    *w = (Waiter){a->call, a->argument, f->waiters};
    if (!done) f->waiters = w;
    pthread_mutex_unlock(&f->lock);
    if (done) a->call(result(f), a->argument), check(a->event, EVENT); // the event must live until this call returns
    return NULL;
}

static void *client_create(CreateArgs *a) {
    SIZED(CreateArgs, try_argument, "Client_Create");
    if (is("clientless")) return fail(5, "no supported devices found for platform CUDA");
    Client *c = calloc(1, sizeof *c);
    c->object.magic = MAGIC(CLIENT), c->device.magic = MAGIC(DEVICE), c->device.client = c, c->devices[0] = &c->device,
        c->tail = &c->head;
    c->limit = 48 << 20;
    char *at = c->version + sprintf(c->version, "double 1:");
    for (size_t i = 0; i < a->count; i++) {
        const Value *v = &a->options[i];
        if (v->head.size < END(Value, count)) return fail(3, "Unexpected PJRT_NamedValue size: expected %zu, got %zu.", END(Value,
            count), v->head.size);
        at += sprintf(at, " %.*s=", (int)v->length, v->name);
        if (v->type == 4) at += sprintf(at, "%d", v->flag);
        else if (v->type == 3) at += sprintf(at, "%g", v->real), c->limit = (64 << 20) * v->real;
        else if (v->type == 2) for (size_t j = 0; j < v->count; j++) at += sprintf(at, "[%ld]", (long)v->list[j]);
        else return fail(3, "Unexpected option name passed to PJRT_Client_Create");
    }
    pthread_mutex_init(&c->lock, NULL), pthread_cond_init(&c->changed, NULL);
    pthread_create(&c->thread, NULL, work, c);
    a->client = c;
    return NULL;
}
static void *client_destroy(One *a) {
    SIZED(One, object, "Client_Destroy");
    Client *c = end(a->object, CLIENT);
    for (int i = 1; i < KINDS; i++)
        if (c->live[i]) die("the client is destroyed, and %ld × %s is left", (long)c->live[i], kinds[i]);
    pthread_mutex_lock(&c->lock);
    c->ended = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    return NULL;
}
static void *platform_name(Text *a) { SIZED(Text, length, "Client_PlatformName"); check(a->object, CLIENT); a->data = "double",
    a->length = 6; return NULL; }
static void *platform_version(Text *a) {
    SIZED(Text, length, "Client_PlatformVersion");
    a->data = ((Client *)check(a->object, CLIENT))->version, a->length = strlen(a->data);
    return NULL;
}
static void *devices(Text *a) {
    SIZED(Text, length, "Client_AddressableDevices");
    a->data = ((Client *)check(a->object, CLIENT))->devices, a->length = !is("deviceless");
    return NULL;
}
static void *description(Two *a) { SIZED(Two, result, "Device_GetDescription"); a->result = check(a->object, DEVICE); return NULL; }
static void *description_kind(Text *a) { SIZED(Text, length, "DeviceDescription_Kind"); check(a->object, DEVICE); a->data = "Double 1",
    a->length = 8; return NULL; }
static void *memory_stats(MemoryArgs *a) {
    SIZED(MemoryArgs, more[5].set, "Device_MemoryStats");
    Client *c = ((Object *)check(a->device, DEVICE))->client;
    a->used = c->used, a->limit = (Optional){c->limit, true};
    return NULL;
}

static void *compile(CompileArgs *a) {
    SIZED(CompileArgs, executable, "Client_Compile");
    Client *c = check(a->client, CLIENT);
    const Program *p = a->program;
    if (p->head.size < END(Program, format_length)) return fail(3, "Unexpected PJRT_Program size: expected %zu, got %zu.", END(Program,
        format_length), p->head.size);
    if (p->format_length != 4 || memcmp(p->format, "mlir", 4)) return fail(3, "unknown program format");
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (!memmem(p->code, p->length, programs[i].name, strlen(programs[i].name))) continue;
        Loaded *l = begin(sizeof *l, LOADED, c);
        l->program = i, l->length = a->length;
        memcpy(l->options, a->options, a->length < sizeof l->options ? a->length : sizeof l->options);
        a->executable = l;
        return NULL;
    }
    if (prepare_text) {
        Error *e = NULL;
        int number = prepare_other(p->code, p->length, &e);
        if (e) return e;
        Loaded *l = begin(sizeof *l, LOADED, c);
        l->program = number;
        a->executable = l;
        return NULL;
    }
    return fail(2, "MLIR: error: unexpected text: %.*s", p->length < 40 ? (int)p->length : 40, p->code);
}
static void *loaded_destroy(One *a) { SIZED(One, object, "LoadedExecutable_Destroy"); end(a->object, LOADED); return NULL; }
typedef struct { Object object; Loaded *loaded; } Executable;
static void *get_executable(Two *a) {
    SIZED(Two, result, "LoadedExecutable_GetExecutable");
    Loaded *l = check(a->object, LOADED);
    Executable *e = begin(sizeof *e, EXECUTABLE, l->object.client);
    e->loaded = l;
    a->result = e;
    return NULL;
}
static void *executable_destroy(One *a) { SIZED(One, object, "Executable_Destroy"); end(a->object, EXECUTABLE); return NULL; }
static void *outputs(Two *a) {
    SIZED(Two, result, "Executable_NumOutputs");
    int program = ((Executable *)check(a->object, EXECUTABLE))->loaded->program;
    a->result = (void *)(intptr_t)(other_of(program) ? other_of(program)->outputs : programs[program].outputs);
    return NULL;
}
static void release(Object *o) { free((void *)o[1].client), end(o, SERIALIZED); }
static void *serialize(SerializeArgs *a) {
    SIZED(SerializeArgs, release, "Executable_Serialize");
    Executable *e = check(a->executable, EXECUTABLE);
    if (other_of(e->loaded->program)) return fail(12, "a program that the test interprets cannot be serialized");
    Object *o = begin(2 * sizeof *o, SERIALIZED, e->object.client);
    char *copy = malloc(a->length = 6 + sizeof(Loaded));
    memcpy(copy, "double", 6), memcpy(copy + 6, e->loaded, sizeof(Loaded));
    o[1].client = (void *)copy, a->bytes = copy, a->backing = o, a->release = release;
    return NULL;
}
static void *deserialize(DeserializeArgs *a) {
    SIZED(DeserializeArgs, options_length, "Executable_DeserializeAndLoad");
    Client *c = check(a->client, CLIENT);
    if (a->length != 6 + sizeof(Loaded) || memcmp(a->bytes, "double", 6)) return fail(13, "Could not deserialize the executable");
    Loaded *l = begin(sizeof *l, LOADED, c);
    memcpy((char *)l + sizeof(Object), a->bytes + 6 + sizeof(Object), sizeof *l - sizeof(Object));
    a->executable = l;
    return NULL;
}
static void *compiled_memory(CompiledArgs *a) { // version 0.115 demands less here than 0.104 has
    SIZED(CompiledArgs, rest[5], "Executable_GetCompiledMemoryStats");
    Other *o = other_of(((Executable *)check(a->executable, EXECUTABLE))->loaded->program);
    if (o) {
        for (int i = 0; i < o->inputs; i++) {
            a->arguments += size_of(o->shapes + i);
            if (is_donated(o, i)) a->alias += size_of(o->shapes + i);
        }
        for (int i = 0; i < o->outputs; i++) a->outputs += size_of(o->shapes + o->inputs + i);
        a->temporary = o->temporary;
        return NULL;
    }
    a->code = 1, a->arguments = 2, a->outputs = 3, a->alias = 4, a->temporary = 5;
    return NULL;
}

static void *upload(UploadArgs *a) {
    SIZED(UploadArgs, buffer, "Client_BufferFromHostBuffer");
    Client *c = check(a->client, CLIENT);
    check(a->device, DEVICE);
    size_t size = sizes[a->type];
    for (size_t i = 0; i < a->dim_count; i++) size *= a->dims[i];
    if (c->used + (long)size > c->limit) return fail(8, "Out of memory while trying to allocate %zu bytes.", size);
    Buffer *b = new_buffer(c, a->type, size, a->dims, a->dim_count);
    Future *done = new_future();
    if (a->semantics == 0) {
        memcpy(b->data->bytes, a->data, size), finish(b->ready, 0, NULL), finish(done, 0, NULL);
    } else {
        Task *t = new_task(UPLOAD, 0, 1);
        t->host = (char *)a->data, t->size = size, t->future = share(done);
        writes(t, 0, b), enqueue(c, t);
    }
    a->done = new_event(c, done), a->buffer = b;
    drop(done);
    return NULL;
}
static void *download(DownloadArgs *a) {
    SIZED(DownloadArgs, event, "Buffer_ToHostBuffer");
    Buffer *b = check(a->buffer, BUFFER);
    if (b->deleted) return fail(3, "Buffer has been deleted or donated.");
    if (a->size < b->size) return fail(3, "the host memory has %zu bytes, and the buffer %zu", a->size, b->size);
    Task *t = new_task(DOWNLOAD, 1, 0);
    Future *done = new_future();
    t->host = a->data, t->size = b->size, t->future = share(done);
    reads(t, 0, b);
    a->event = new_event(b->object.client, done);
    enqueue(b->object.client, t), drop(done);
    return NULL;
}
static void *ready_event(Two *a) {
    SIZED(Two, result, "Buffer_ReadyEvent");
    Buffer *b = check(a->object, BUFFER);
    if (b->deleted) return fail(3, "Buffer has been deleted or donated.");
    a->result = new_event(b->object.client, b->ready);
    return NULL;
}
static void *is_deleted(DeletedArgs *a) { SIZED(DeletedArgs, deleted, "Buffer_IsDeleted"); a->deleted = ((Buffer *)check(a->buffer,
    BUFFER))->deleted; return NULL; }
static void *buffer_destroy(One *a) {
    SIZED(One, object, "Buffer_Destroy");
    Buffer *b = end(a->object, BUFFER);
    drop(b->ready);
    drop_data(b->object.client, b->data);
    return NULL;
}

// execute_other starts a run of a program of the test's.
static Error *execute_other(Client *c, Loaded *l, Other *o, ExecuteArgs *a) {
    Buffer *const *in = a->arguments[0];
    if (a->count != (size_t)o->inputs) return fail(3, "Execution supplied %zu buffers but compiled program expected %d buffers", a->count,
        (int)o->inputs);
    for (int i = 0; i < o->inputs; i++) {
        Buffer *b = check(in[i], BUFFER);
        const Shape *s = o->shapes + i;
        if (b->object.client != c) return fail(3, "Buffer passed to Execute() as argument %d is of another client", i);
        if (b->deleted) return fail(3, "Buffer has been deleted or donated.");
        if (b->type != s->type || b->dims != (size_t)s->dims || memcmp(b->dim, s->dim, b->dims * sizeof *b->dim))
            return fail(3, "Executable expected parameter %d of type %d and size %zu but got buffer with incompatible type %d and size %zu",
                i, (int)s->type, size_of(s), b->type, b->size);
        for (int j = 0; j < o->inputs; j++)
            if (j != i && in[j] == b && is_donated(o, i)) return fail(3, "f(donate(a), a): arguments %d and %d are one buffer", i, j);
    }
    for (int i = 0; i < o->inputs; i++)
        if (is_donated(o, i) && atomic_exchange(&in[i]->deleted, true)) die("two runs at once are given a buffer that one donates");
    long needs = o->temporary;
    for (int i = 0; i < o->inputs + o->outputs; i++) needs += (i < o->inputs ? -is_donated(o, i) : 1) * (long)size_of(o->shapes + i);
    Task *t = new_task(l->program, o->inputs, o->outputs);
    if (c->used + needs > c->limit) t->failed = 8;
    for (int i = 0; i < o->inputs; i++) reads(t, i, in[i]);
    for (int i = 0; i < o->outputs; i++) {
        const Shape *s = o->shapes + o->inputs + i;
        Buffer *b = new_buffer(c, s->type, t->failed ? 0 : size_of(s), s->dim, s->dims);
        b->size = size_of(s);
        a->outputs[0][i] = b;
        writes(t, i, b);
    }
    enqueue(c, t);
    return NULL;
}

static void *execute(ExecuteArgs *a) {
    SIZED(ExecuteArgs, device, "LoadedExecutable_Execute");
    Error *e = sized(a->options, END(Options, slices), "PJRT_ExecuteOptions");
    if (e) return e;
    Loaded *l = check(a->executable, LOADED);
    Client *c = l->object.client;
    check(a->device, DEVICE);
    if (a->devices != 1) return fail(3, "%zu devices are given, and there is one", a->devices);
    if (other_of(l->program)) return execute_other(c, l, other_of(l->program), a);
    int inputs = programs[l->program].inputs, donated = programs[l->program].donated;
    if (a->count != (size_t)inputs) return fail(3, "Execution supplied %zu buffers but compiled program expected %d buffers", a->count,
        inputs);
    for (int i = 0; i < inputs; i++) {
        Buffer *b = check(a->arguments[0][i], BUFFER);
        if (b->deleted || (i == donated && atomic_exchange(&b->deleted, true))) return fail(3, "Buffer has been deleted or donated.");
    }
    Task *t = new_task(l->program, inputs, programs[l->program].outputs);
    memcpy(t->options, l->options, sizeof t->options);
    for (int i = 0; i < inputs; i++) reads(t, i, a->arguments[0][i]);
    for (int i = 0; i < programs[l->program].outputs; i++) {
        int64_t dim[8] = {sizeof t->options}, dims = 1, size = sizeof t->options;
        Buffer *x = t->in[0], *y = t->in[1];
        if (x) memcpy(dim, x->dim, sizeof dim), dims = x->dims, size = x->size;
        if (l->program == PRODUCT) dim[1] = y->dim[1], size = dim[0] * dim[1] * 4;
        if (l->program == CONVOLUTION) dim[3] = y->dim[3], size = dim[0] * dim[1] * dim[2] * dim[3] * 4;
        Buffer *b = new_buffer(c, x ? x->type : 6, size, dim, dims);
        a->outputs[0][i] = b;
        writes(t, i, b);
    }
    enqueue(c, t);
    return NULL;
}

static atomic_long regions;
long double_regions(void) { return regions; } // for tests: how many regions have been pinned
static void *map(MapArgs *a) {
    SIZED(MapArgs, size, "Client_DmaMap");
    Client *c = check(a->client, CLIENT);
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < 64; i++)
        if (!c->regions[i]) { c->regions[i] = a->data, c->live[REGION]++, regions++, a->data = NULL; break; }
    pthread_mutex_unlock(&c->lock);
    return a->data ? fail(8, "too many regions are pinned") : NULL;
}
static void *unmap(MapArgs *a) {
    SIZED(MapArgs, data, "Client_DmaUnmap");
    Client *c = check(a->client, CLIENT);
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < 64; i++)
        if (a->data && c->regions[i] == a->data) c->regions[i] = a->data = NULL, c->live[REGION]--;
    pthread_mutex_unlock(&c->lock);
    return a->data ? fail(3, "the memory is not pinned") : NULL;
}

static void *other(void *a) { (void)a; die("a function is called that stoke does not know"); return NULL; }

static struct { size_t size; void *extensions; Head version; int major, minor; void *functions[138]; } api;
void *GetPjrtApi(void) {
    const char *chosen = getenv("STOKE_DOUBLE");
    snprintf(mode, sizeof mode, "%s", chosen ? chosen : "");
    static const struct { int at; void *function; } known[] = {
        {0, error_destroy}, {1, error_message}, {2, error_code}, {3, initialize}, {4, attributes}, {5, event_destroy}, {8,
            event_await}, {9, event_on_ready},
        {10, client_create}, {11, client_destroy}, {12, platform_name}, {14, platform_version}, {16, devices}, {20, compile}, {22,
            upload},
        {26, description_kind}, {29, description}, {34, memory_stats}, {40, executable_destroy}, {44, outputs}, {49, serialize}, {50,
            loaded_destroy},
        {51, get_executable}, {55, execute}, {56, deserialize}, {58, buffer_destroy}, {68, is_deleted}, {70, download}, {72, ready_event},
        {96, compiled_memory}, {110, map}, {111, unmap}};
    for (int i = 0; i < 138; i++) api.functions[i] = other;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) api.functions[known[i].at] = known[i].function;
    int count = is("short") ? 110 : is("old") ? 112 : 138;
    api.major = is("major"), api.minor = is("old") ? 90 : 115, api.version.size = 24, api.size = 40 + 8 * count;
    return &api;
}
