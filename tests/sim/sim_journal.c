/* See sim_journal.h.  The tables are vectors in the order of their keys.  `apply` is the engine: it
 * does one call atomically, and is the only place that changes what is stored. */
#include "sim/sim_journal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIM_MAX 1000 /* entries per call */
#define OPS (JOURNAL_REPORT + 1)

struct bytes {
    void *data;
    size_t len;
};
struct entry {
    uint8_t id[JOURNAL_ID_SIZE];
    struct bytes bytes;
};
struct chunk {
    int64_t index, no;
    struct bytes bytes;
};
struct snapshot {
    int64_t index, n_chunks;
};
struct order {
    int n; /* the call that it is for; 0: none */
    enum sim_fate fate;
    int later;
};

struct sim_journal {
    const char *name;
    bool shared;
    int handles;
    int64_t epoch;
    uint8_t claim[JOURNAL_CLAIM_SIZE];
    char url[JOURNAL_URL_MAX + 1];
    int64_t first; /* the index of entries.v[0] */
    VEC(struct entry) entries;
    VEC(struct chunk) chunks;
    struct snapshot newest, older; /* index 0: none */
    VEC(struct journal_server) servers;
    size_t bytes;

    VEC(struct sim_sent *) sent; /* all calls on their way, oldest first */
    struct order orders[OPS];
    void (*stored)(void *context, int64_t epoch, int64_t index, const void *data, size_t len);
    void *stored_context;
    struct sim_journal *next; /* all journals of this program */
};

struct sim_sent {
    struct sim_journal *sim;
    struct journal_call call; /* its texts and bytes are copies; its results are those of `apply` */
    bool has_run;
    int later; /* sent by the driver: it runs after so many further calls; 0: not by itself */
};

static struct sim_journal *journals;

static void sent_close(struct sim_sent *sent)
{
    free((void *)(uintptr_t)sent->call.data);
    free((void *)(uintptr_t)sent->call.url);
    free((void *)(uintptr_t)sent->call.gone);
    journal_call_close(&sent->call);
    free(sent);
}

struct sim_journal *sim_journal_new(const char *name, bool shared)
{
    struct sim_journal *sim = hf_alloc(sizeof *sim);
    sim->name = name;
    sim->shared = shared;
    sim->first = 1;
    sim->next = journals;
    journals = sim;
    return sim;
}

void sim_journal_free(struct sim_journal *sim)
{
    if (!sim)
        return;
    hf_check(sim->handles == 0);
    for (size_t i = 0; i < sim->sent.n; i++)
        sent_close(sim->sent.v[i]);
    for (size_t i = 0; i < sim->entries.n; i++)
        free(sim->entries.v[i].bytes.data);
    for (size_t i = 0; i < sim->chunks.n; i++)
        free(sim->chunks.v[i].bytes.data);
    vec_close(&sim->entries);
    vec_close(&sim->chunks);
    vec_close(&sim->servers);
    vec_close(&sim->sent);
    struct sim_journal **at = &journals;
    while (*at != sim)
        at = &(*at)->next;
    *at = sim->next;
    free(sim);
}

/* ---- the engine ---- */

static void *copy(const void *data, size_t len)
{
    char *ret = hf_alloc(len ? len : 1);
    if (len)
        memcpy(ret, data, len);
    return ret;
}

static int64_t last_of(const struct sim_journal *sim)
{
    return sim->first + (int64_t)sim->entries.n - 1;
}

static bool is_current(const struct sim_journal *sim, const struct journal_mandate *m)
{
    return m->epoch > 0 && m->epoch == sim->epoch &&
           memcmp(m->claim, sim->claim, sizeof sim->claim) == 0;
}

void sim_journal_head(const struct sim_journal *sim, struct journal_head *ret)
{
    *ret = (struct journal_head){
        .epoch = sim->epoch, .last = last_of(sim), .snapshot = sim->newest.index};
    memcpy(ret->claim, sim->claim, sizeof ret->claim);
    memcpy(ret->url, sim->url, sizeof ret->url);
}

size_t sim_journal_bytes(const struct sim_journal *sim) { return sim->bytes; }

void sim_journal_on_stored(struct sim_journal *sim,
                           void (*stored)(void *context, int64_t epoch, int64_t index,
                                          const void *data, size_t len),
                           void *context)
{
    sim->stored = stored;
    sim->stored_context = context;
}

const char *journal_result_name(enum journal_result result)
{
    static const char *const names[] = {
        [JOURNAL_DONE] = "done",
        [JOURNAL_FOUND] = "found",
        [JOURNAL_DEPOSED] = "deposed",
        [JOURNAL_TRIMMED] = "trimmed",
        [JOURNAL_NONE] = "none",
        [JOURNAL_UNKNOWN] = "unknown",
        [JOURNAL_UNREACHABLE] = "unreachable",
        [JOURNAL_DAMAGED] = "damaged",
    };
    return names[result];
}

static enum journal_result apply_read(struct sim_journal *sim, struct journal_call *c)
{
    journal_page_clear(&c->page);
    sim_journal_head(sim, &c->page.head);
    if (c->index >= last_of(sim))
        return JOURNAL_DONE;
    if (c->index + 1 < sim->first)
        return JOURNAL_TRIMMED;
    for (int64_t index = c->index + 1; index <= last_of(sim); index++) {
        const struct bytes *b = &sim->entries.v[index - sim->first].bytes;
        if (c->page.entries.n && c->page.bytes.len + b->len > JOURNAL_PAGE_MAX)
            break;
        struct journal_entry *e = vec_push(&c->page.entries);
        *e = (struct journal_entry){.index = index, .at = c->page.bytes.len, .len = b->len};
        buf_put(&c->page.bytes, b->data, b->len);
    }
    return JOURNAL_DONE;
}

static enum journal_result apply_claim(struct sim_journal *sim, const struct journal_call *c)
{
    if (is_current(sim, &c->mandate))
        return JOURNAL_FOUND;
    if (c->mandate.epoch != sim->epoch + 1)
        return JOURNAL_DEPOSED;
    sim->epoch = c->mandate.epoch;
    memcpy(sim->claim, c->mandate.claim, sizeof sim->claim);
    (void)snprintf(sim->url, sizeof sim->url, "%s", c->url);
    return JOURNAL_DONE;
}

static enum journal_result damaged(struct journal_call *c, const char *why)
{
    (void)hf_err_set(&c->err, HF_INTERNAL, "%s", why);
    return JOURNAL_DAMAGED;
}

static enum journal_result apply_append(struct sim_journal *sim, struct journal_call *c)
{
    if (c->index >= sim->first && c->index <= last_of(sim) &&
        memcmp(sim->entries.v[c->index - sim->first].id, c->id, JOURNAL_ID_SIZE) == 0)
        return JOURNAL_FOUND;
    if (!is_current(sim, &c->mandate) || c->index <= last_of(sim))
        return JOURNAL_DEPOSED;
    if (c->index > last_of(sim) + 1)
        return damaged(c, "the journal ends before this entry");
    struct entry *e = vec_push(&sim->entries);
    memcpy(e->id, c->id, sizeof e->id);
    e->bytes = (struct bytes){copy(c->data, c->len), c->len};
    sim->bytes += c->len;
    if (sim->stored)
        sim->stored(sim->stored_context, sim->epoch, c->index, c->data, c->len);
    return JOURNAL_DONE;
}

static struct chunk *chunk_find(struct sim_journal *sim, int64_t index, int64_t no)
{
    for (size_t i = 0; i < sim->chunks.n; i++)
        if (sim->chunks.v[i].index == index && sim->chunks.v[i].no == no)
            return &sim->chunks.v[i];
    return NULL;
}

/* A snapshot that is pointed to does not change any more. */
static enum journal_result apply_put_chunk(struct sim_journal *sim, const struct journal_call *c)
{
    if (!is_current(sim, &c->mandate))
        return JOURNAL_DEPOSED;
    if (c->index <= sim->newest.index)
        return JOURNAL_DONE;
    struct chunk *chunk = chunk_find(sim, c->index, c->no);
    if (!chunk)
        chunk = vec_push(&sim->chunks);
    free(chunk->bytes.data);
    sim->bytes += c->len - chunk->bytes.len;
    *chunk = (struct chunk){c->index, c->no, {copy(c->data, c->len), c->len}};
    return JOURNAL_DONE;
}

static void sweep_chunks(struct sim_journal *sim)
{
    size_t kept = 0;
    for (size_t i = 0; i < sim->chunks.n; i++) {
        struct chunk *chunk = &sim->chunks.v[i];
        if (chunk->index >= sim->newest.index || chunk->index == sim->older.index) {
            sim->chunks.v[kept++] = *chunk;
        } else {
            sim->bytes -= chunk->bytes.len;
            free(chunk->bytes.data);
        }
    }
    sim->chunks.n = kept;
}

static enum journal_result apply_point(struct sim_journal *sim, struct journal_call *c)
{
    if (!is_current(sim, &c->mandate))
        return JOURNAL_DEPOSED;
    if (c->index == sim->newest.index)
        return JOURNAL_DONE;
    if (c->index < sim->newest.index)
        return damaged(c, "there is a newer snapshot");
    bool complete = c->index <= last_of(sim);
    for (int64_t no = 0; no < c->n_chunks; no++)
        complete = complete && chunk_find(sim, c->index, no);
    if (!complete)
        return damaged(c, "the snapshot is not complete");
    sim->older = sim->newest;
    sim->newest = (struct snapshot){c->index, c->n_chunks};
    sweep_chunks(sim);
    return JOURNAL_DONE;
}

static enum journal_result apply_load(struct sim_journal *sim, struct journal_call *c)
{
    c->snapshot.len = 0;
    if (!sim->newest.index)
        return JOURNAL_NONE;
    for (int64_t no = 0; no < sim->newest.n_chunks; no++) {
        const struct chunk *chunk = chunk_find(sim, sim->newest.index, no);
        hf_check(chunk);
        buf_put(&c->snapshot, chunk->bytes.data, chunk->bytes.len);
    }
    c->snapshot_index = sim->newest.index;
    return JOURNAL_DONE;
}

static enum journal_result apply_trim(struct sim_journal *sim, struct journal_call *c)
{
    if (!is_current(sim, &c->mandate))
        return JOURNAL_DEPOSED;
    size_t n = 0;
    while (n < TRIM_MAX && sim->first + (int64_t)n <= sim->older.index) {
        sim->bytes -= sim->entries.v[n].bytes.len;
        free(sim->entries.v[n++].bytes.data);
    }
    sim->entries.n -= n;
    if (n)
        memmove(sim->entries.v, sim->entries.v + n, sim->entries.n * sizeof *sim->entries.v);
    sim->first += (int64_t)n;
    c->more = sim->first <= sim->older.index;
    return JOURNAL_DONE;
}

static enum journal_result apply_report(struct sim_journal *sim, struct journal_call *c)
{
    struct journal_server *self = NULL;
    for (size_t i = 0; i < sim->servers.n; i++)
        if (strcmp(sim->servers.v[i].url, c->self.url) == 0)
            self = &sim->servers.v[i];
    if (!self)
        self = vec_push(&sim->servers);
    *self = c->self;
    for (size_t i = 0; c->gone && i < sim->servers.n; i++)
        if (strcmp(sim->servers.v[i].url, c->gone) == 0)
            sim->servers.v[i--] = sim->servers.v[--sim->servers.n];
    c->n_servers = sim->servers.n < JOURNAL_SERVERS_MAX ? sim->servers.n : JOURNAL_SERVERS_MAX;
    for (size_t i = 0; i < c->n_servers; i++)
        c->servers[i] = sim->servers.v[i];
    return JOURNAL_DONE;
}

static enum journal_result apply(struct sim_journal *sim, struct journal_call *c)
{
    switch (c->op) {
    case JOURNAL_READ:
        return apply_read(sim, c);
    case JOURNAL_CLAIM:
        return apply_claim(sim, c);
    case JOURNAL_APPEND:
        return apply_append(sim, c);
    case JOURNAL_PUT_CHUNK:
        return apply_put_chunk(sim, c);
    case JOURNAL_POINT:
        return apply_point(sim, c);
    case JOURNAL_LOAD:
        return apply_load(sim, c);
    case JOURNAL_TRIM:
        return apply_trim(sim, c);
    case JOURNAL_REPORT:
        return apply_report(sim, c);
    }
    hf_check(!"an unknown call");
    return JOURNAL_DAMAGED;
}

/* ---- the steps of a call ---- */

struct sim_sent *sim_journal_send(struct sim_journal *sim, const struct journal_call *call)
{
    struct sim_sent *sent = hf_alloc(sizeof *sent);
    struct journal_call *c = &sent->call;
    /* A call keeps what an earlier one of another kind left in it. */
    const bool has_data = call->op == JOURNAL_APPEND || call->op == JOURNAL_PUT_CHUNK;
    const char *url = call->op == JOURNAL_CLAIM ? call->url : NULL;
    const char *gone = call->op == JOURNAL_REPORT ? call->gone : NULL;
    sent->sim = sim;
    *c = (struct journal_call){.op = call->op,
                               .mandate = call->mandate,
                               .index = call->index,
                               .no = call->no,
                               .n_chunks = call->n_chunks,
                               .len = has_data ? call->len : 0,
                               .self = call->self};
    memcpy(c->id, call->id, sizeof c->id);
    c->data = copy(call->data, c->len);
    c->url = url ? hf_strndup(url, strlen(url)) : NULL;
    c->gone = gone ? hf_strndup(gone, strlen(gone)) : NULL;
    *vec_push(&sim->sent) = sent;
    return sent;
}

void sim_sent_run(struct sim_sent *sent)
{
    if (!sent->has_run)
        sent->call.result = apply(sent->sim, &sent->call);
    sent->has_run = true;
}

bool sim_sent_has_run(const struct sim_sent *sent) { return sent->has_run; }

/* Exchanges the answer's memory with that of `call`, which is freed with the one or the other. */
void sim_sent_answer(struct sim_sent *sent, struct journal_call *call)
{
    struct journal_call *c = &sent->call;
    hf_check(sent->has_run);
    call->result = c->result;
    call->err = c->err;
    struct journal_page page = call->page;
    call->page = c->page;
    c->page = page;
    struct buf snapshot = call->snapshot;
    call->snapshot = c->snapshot;
    c->snapshot = snapshot;
    call->snapshot_index = c->snapshot_index;
    call->more = c->more;
    call->n_servers = c->n_servers;
    memcpy(call->servers, c->servers, c->n_servers * sizeof *c->servers);
}

void sim_sent_lose(struct sim_sent *sent, struct journal_call *call)
{
    bool reads = sent->call.op == JOURNAL_READ || sent->call.op == JOURNAL_LOAD;
    call->result = reads ? JOURNAL_UNREACHABLE : JOURNAL_UNKNOWN;
    (void)hf_err_set(&call->err, reads ? HF_UNAVAILABLE : HF_OUTCOME_UNKNOWN,
                     "the simulated answer was lost");
}

void sim_journal_refuse(struct journal_call *call)
{
    call->result = JOURNAL_UNREACHABLE;
    (void)hf_err_set(&call->err, HF_UNAVAILABLE, "the simulated journal cannot be reached");
}

void sim_sent_free(struct sim_sent *sent)
{
    if (!sent)
        return;
    struct sim_journal *sim = sent->sim;
    size_t at = 0;
    while (sim->sent.v[at] != sent)
        at++;
    sim->sent.n--;
    memmove(&sim->sent.v[at], &sim->sent.v[at + 1], (sim->sent.n - at) * sizeof *sim->sent.v);
    sent_close(sent);
}

/* ---- the driver ---- */

void sim_journal_order(struct sim_journal *sim, enum journal_op op, int n, enum sim_fate fate,
                       int later)
{
    hf_check(n > 0 && (fate != SIM_LOST_LATE || later > 0));
    sim->orders[op] = (struct order){.n = n, .fate = fate, .later = later};
}

/* Runs and frees those of the late calls whose time has come after `passed` further calls; returns
 * how many there were. */
static int run_late(struct sim_journal *sim, int passed)
{
    int n = 0;
    for (size_t i = 0; i < sim->sent.n;) {
        struct sim_sent *sent = sim->sent.v[i];
        bool waits = sent->later > passed;
        if (waits)
            sent->later -= passed;
        if (waits || !sent->later) {
            i++;
            continue;
        }
        sim_sent_run(sent);
        sim_sent_free(sent);
        n++;
    }
    return n;
}

int sim_journal_run_late(struct sim_journal *sim) { return run_late(sim, INT_MAX); }

static struct order take_order(struct sim_journal *sim, enum journal_op op)
{
    struct order *order = &sim->orders[op];
    if (order->n == 0 || --order->n > 0)
        return (struct order){.fate = SIM_DONE};
    return *order;
}

struct handle {
    struct journal journal;
    struct sim_journal *sim;
};

static void call_whole(struct journal *j, struct journal_call *call)
{
    struct sim_journal *sim = ((struct handle *)(void *)j)->sim;
    struct order order = take_order(sim, call->op);
    struct sim_sent *sent = sim_journal_send(sim, call);
    (void)run_late(sim, 1);
    if (order.fate == SIM_DONE || order.fate == SIM_LOST_DONE)
        sim_sent_run(sent);
    if (order.fate == SIM_DONE)
        sim_sent_answer(sent, call);
    else if (order.fate == SIM_REFUSED)
        sim_journal_refuse(call);
    else
        sim_sent_lose(sent, call);
    if (order.fate == SIM_LOST_LATE)
        sent->later = order.later;
    else
        sim_sent_free(sent);
}

/* Makes the call and copies its failure; every function of the driver ends with it. */
static enum journal_result finish(struct journal_call *call, struct hf_err *err)
{
    if (call->err.code != HF_OK)
        (void)hf_err_set(err, call->err.code, "%s", call->err.msg);
    journal_call_close(call);
    return call->result;
}

static enum hf_status sim_open(const char *url, const struct journal_options *options,
                               struct journal **ret, struct hf_err *err)
{
    (void)options;
    struct sim_journal *sim = journals;
    while (sim && strcmp(url + strlen("sim:"), sim->name) != 0)
        sim = sim->next;
    if (!sim)
        return hf_err_set(err, HF_INVALID_REQUEST, "there is no simulated journal of this name");
    if (sim->handles && !sim->shared)
        return hf_err_set(err, HF_UNAVAILABLE, "another server uses this simulated journal");
    struct handle *h = hf_alloc(sizeof *h);
    h->journal.driver = &journal_sim;
    h->sim = sim;
    sim->handles++;
    *ret = &h->journal;
    return HF_OK;
}

static void sim_close(struct journal *j)
{
    if (j)
        ((struct handle *)(void *)j)->sim->handles--;
    free(j);
}

static enum journal_result sim_read(struct journal *j, int64_t after, struct journal_page *ret,
                                    struct hf_err *err)
{
    struct journal_call call = {.op = JOURNAL_READ, .index = after};
    call_whole(j, &call);
    if (call.result == JOURNAL_DONE || call.result == JOURNAL_TRIMMED) {
        struct journal_page page = *ret;
        *ret = call.page;
        call.page = page;
    }
    return finish(&call, err);
}

static enum journal_result sim_claim(struct journal *j, const struct journal_mandate *m,
                                     const char *url, struct hf_err *err)
{
    struct journal_call call = {.op = JOURNAL_CLAIM, .mandate = *m, .url = url};
    call_whole(j, &call);
    return finish(&call, err);
}

static enum journal_result sim_append(struct journal *j, const struct journal_mandate *m,
                                      int64_t index, const uint8_t id[JOURNAL_ID_SIZE],
                                      const void *data, size_t len, struct hf_err *err)
{
    struct journal_call call = {
        .op = JOURNAL_APPEND, .mandate = *m, .index = index, .data = data, .len = len};
    memcpy(call.id, id, sizeof call.id);
    call_whole(j, &call);
    return finish(&call, err);
}

static enum journal_result sim_put_chunk(struct journal *j, const struct journal_mandate *m,
                                         int64_t index, int64_t no, const void *data, size_t len,
                                         struct hf_err *err)
{
    struct journal_call call = {
        .op = JOURNAL_PUT_CHUNK, .mandate = *m, .index = index, .no = no, .data = data, .len = len};
    call_whole(j, &call);
    return finish(&call, err);
}

static enum journal_result sim_point(struct journal *j, const struct journal_mandate *m,
                                     int64_t index, int64_t n_chunks, struct hf_err *err)
{
    struct journal_call call = {
        .op = JOURNAL_POINT, .mandate = *m, .index = index, .n_chunks = n_chunks};
    call_whole(j, &call);
    return finish(&call, err);
}

static enum journal_result sim_load(struct journal *j, int64_t *ret_index, struct buf *ret,
                                    struct hf_err *err)
{
    struct journal_call call = {.op = JOURNAL_LOAD};
    call_whole(j, &call);
    if (call.result == JOURNAL_DONE) {
        buf_put(ret, call.snapshot.data, call.snapshot.len);
        *ret_index = call.snapshot_index;
    }
    return finish(&call, err);
}

static enum journal_result sim_trim(struct journal *j, const struct journal_mandate *m,
                                    bool *ret_more, struct hf_err *err)
{
    struct journal_call call = {.op = JOURNAL_TRIM, .mandate = *m};
    call_whole(j, &call);
    if (call.result == JOURNAL_DONE)
        *ret_more = call.more;
    return finish(&call, err);
}

static enum journal_result sim_report(struct journal *j, const struct journal_server *self,
                                      const char *gone, struct journal_server *ret, size_t max,
                                      size_t *ret_n, struct hf_err *err)
{
    struct journal_call call = {.op = JOURNAL_REPORT, .self = *self, .gone = gone};
    call_whole(j, &call);
    if (call.result == JOURNAL_DONE) {
        *ret_n = call.n_servers < max ? call.n_servers : max;
        memcpy(ret, call.servers, *ret_n * sizeof *ret);
    }
    return finish(&call, err);
}

static const char *const schemes[] = {"sim:", NULL};

const struct journal_driver journal_sim = {
    .name = "sim",
    .schemes = schemes,
    .shared = true,
    .open = sim_open,
    .close = sim_close,
    .read = sim_read,
    .claim = sim_claim,
    .append = sim_append,
    .put_chunk = sim_put_chunk,
    .point = sim_point,
    .load = sim_load,
    .trim = sim_trim,
    .report = sim_report,
};
