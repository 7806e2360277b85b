/* Between commands and the bytes of an entry: the master writes, every server reads.  A table says
 * which fields each kind of command uses; only those are stored, in the order of the table's bits.
 * Pure functions; the reader accepts any bytes, and returns only commands that cell_command_check
 * accepts. */
#include "cell/entry.h"

#include <string.h>

#include "base/digest.h"
#include "cell/pack.h"

#define ENTRY_VERSION 1

enum {
    SESSION = 1,
    OWNER = 2,
    NAME = 4,
    FENCE = 8,
    REQUEST = 16, /* mode, slots, priority, delay_ms, agent, label */
    VALUE = 32,
    ACCOUNT = 64, /* ttl_ms, account, limit, label */
    REIGN = 128,  /* epoch, url */
    TTLS = 256
};
static const uint16_t fields_of[CELL_KINDS] = {
    [CELL_MASTER] = FENCE | REIGN,
    [CELL_RESIGN] = TTLS,
    [CELL_OPEN] = SESSION | ACCOUNT,
    [CELL_CLOSE] = SESSION,
    [CELL_EXPIRE] = SESSION,
    [CELL_ACQUIRE] = SESSION | OWNER | NAME | REQUEST | VALUE,
    [CELL_RELEASE] = SESSION | OWNER | NAME | FENCE,
    [CELL_CANCEL] = SESSION | OWNER | NAME,
    [CELL_WITHDRAW] = SESSION | OWNER | NAME | FENCE,
    [CELL_VALUE] = SESSION | OWNER | NAME | FENCE | VALUE,
    [CELL_UNDELAY] = NAME | FENCE,
    [CELL_BREAK] = NAME,
    [CELL_FORGET] = 0,
};

enum {
    FLAG_QUEUE = 1,
    FLAG_CACHED = 2,
    FLAG_BY_MASTER = 4,
    FLAG_SECRET = 8,
    FLAG_VALUE = 16,
    FLAG_KNOTS = 32
};

static void put_int64(struct buf *out, int64_t value)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> 8 * i);
    buf_put(out, bytes, sizeof bytes);
}

static int64_t get_int64(struct unpack *u)
{
    const uint8_t *bytes = unpack_bytes(u, 8);
    uint64_t value = 0;
    for (size_t i = 0; bytes && i < 8; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return (int64_t)value;
}

/* ---- writing ---- */

void entry_put_head(struct buf *out, const struct entry_head *head)
{
    buf_char(out, ENTRY_VERSION);
    put_int64(out, head->epoch);
    buf_put(out, head->id, sizeof head->id);
    buf_put(out, head->previous, sizeof head->previous);
}

static bool has_secret(const struct id *id)
{
    for (size_t i = 0; i < sizeof id->secret; i++)
        if (id->secret[i])
            return true;
    return false;
}

static uint8_t flags_of(const struct cell_command *c, unsigned fields)
{
    unsigned flags = (c->queue ? FLAG_QUEUE : 0U) | (c->cached ? FLAG_CACHED : 0U) |
                     (c->by_master ? FLAG_BY_MASTER : 0U) | (c->finds_knots ? FLAG_KNOTS : 0U);
    if (fields & SESSION && has_secret(&c->session))
        flags |= FLAG_SECRET;
    if (fields & VALUE && c->value.data)
        flags |= FLAG_VALUE;
    return (uint8_t)flags;
}

static void put_request(struct buf *out, const struct cell_command *c)
{
    buf_char(out, (char)c->mode);
    pack_uint(out, c->slots);
    pack_int(out, c->priority);
    pack_uint(out, c->delay_ms);
    pack_text(out, c->agent.data, c->agent.len);
    pack_text(out, c->label.data, c->label.len);
}

static void put_account(struct buf *out, const struct cell_command *c)
{
    pack_uint(out, c->ttl_ms);
    pack_int(out, c->account);
    pack_uint(out, c->limit);
    pack_text(out, c->label.data, c->label.len);
}

static void put_ttls(struct buf *out, const struct cell_command *c)
{
    pack_uint(out, c->n_ttls);
    for (size_t i = 0; i < c->n_ttls; i++) {
        pack_uint(out, (uint64_t)c->ttls[i].session);
        pack_uint(out, (uint64_t)c->ttls[i].remaining_ms);
    }
}

void entry_put(struct buf *out, const struct cell_command *c)
{
    /* A command that no server can read would stop the cell for good. */
    hf_check(!cell_command_check(c));
    unsigned fields = fields_of[c->kind], flags = flags_of(c, fields);
    buf_char(out, (char)c->kind);
    buf_char(out, (char)flags);
    if (fields & SESSION)
        pack_uint(out, (uint64_t)c->session.key);
    if (flags & FLAG_SECRET)
        buf_put(out, c->session.secret, sizeof c->session.secret);
    if (fields & OWNER)
        pack_owner(out, &c->owner);
    if (fields & NAME)
        pack_text(out, c->name.data, c->name.len);
    if (fields & FENCE)
        pack_uint(out, (uint64_t)c->fence);
    if (fields & REQUEST)
        put_request(out, c);
    if (flags & FLAG_VALUE)
        pack_text(out, c->value.data, c->value.len);
    if (fields & ACCOUNT)
        put_account(out, c);
    if (fields & REIGN) {
        pack_uint(out, (uint64_t)c->epoch);
        pack_text(out, c->url.data, c->url.len);
    }
    if (fields & TTLS)
        put_ttls(out, c);
}

/* ---- reading ---- */

bool entry_open(struct entry_reader *r, const void *data, size_t len, struct entry_head *ret,
                struct hf_err *err)
{
    struct unpack u = {.at = data, .end = (const uint8_t *)data + len};
    memset(r, 0, sizeof *r);
    if (len > CELL_ENTRY_MAX) {
        hf_err_set(err, HF_INVALID_REQUEST, "the entry is too long");
        return false;
    }
    uint8_t version = unpack_byte(&u);
    struct entry_head head = {.epoch = get_int64(&u)};
    const void *id = unpack_bytes(&u, sizeof head.id);
    const void *previous = unpack_bytes(&u, sizeof head.previous);
    if (u.bad || version != ENTRY_VERSION || head.epoch < 0) {
        hf_err_set(err, HF_INVALID_REQUEST, "the bytes are no entry of version %d", ENTRY_VERSION);
        return false;
    }
    memcpy(head.id, id, sizeof head.id);
    memcpy(head.previous, previous, sizeof head.previous);
    r->at = u.at;
    r->end = u.end;
    *ret = head;
    return true;
}

static void get_request(struct unpack *u, struct cell_command *c)
{
    c->mode = (enum cell_mode)unpack_byte(u);
    c->slots = (uint32_t)unpack_uint(u, UINT32_MAX);
    c->priority = (int32_t)unpack_int(u, INT32_MIN, INT32_MAX);
    c->delay_ms = (uint32_t)unpack_uint(u, UINT32_MAX);
    c->agent = unpack_text(u, CELL_AGENT_MAX);
    c->label = unpack_text(u, CELL_LABEL_MAX);
}

static void get_account(struct unpack *u, struct cell_command *c)
{
    c->ttl_ms = (uint32_t)unpack_uint(u, UINT32_MAX);
    c->account = unpack_int(u, INT64_MIN, INT64_MAX);
    c->limit = (uint32_t)unpack_uint(u, UINT32_MAX);
    c->label = unpack_text(u, CELL_LABEL_MAX);
}

static void get_ttls(struct unpack *u, struct entry_reader *r, struct cell_command *c)
{
    vec_clear(&r->ttls);
    for (uint64_t n = unpack_uint(u, CELL_TTLS_MAX); n > 0 && !u->bad; n--) {
        struct cell_ttl *ttl = vec_push(&r->ttls);
        ttl->session = (int64_t)unpack_uint(u, INT64_MAX);
        ttl->remaining_ms = (int64_t)unpack_uint(u, INT64_MAX);
    }
    c->ttls = r->ttls.v;
    c->n_ttls = r->ttls.n;
}

static void get_session(struct unpack *u, unsigned flags, struct cell_command *c)
{
    c->session.key = (int64_t)unpack_uint(u, INT64_MAX);
    const void *secret = flags & FLAG_SECRET ? unpack_bytes(u, sizeof c->session.secret) : NULL;
    if (secret)
        memcpy(c->session.secret, secret, sizeof c->session.secret);
}

static void get_fields(struct unpack *u, struct entry_reader *r, unsigned flags,
                       struct cell_command *c)
{
    unsigned fields = fields_of[c->kind];
    if (fields & SESSION)
        get_session(u, flags, c);
    if (fields & OWNER)
        c->owner = unpack_owner(u);
    if (fields & NAME)
        c->name = unpack_text(u, CELL_NAME_MAX);
    if (fields & FENCE)
        c->fence = (int64_t)unpack_uint(u, INT64_MAX);
    if (fields & REQUEST)
        get_request(u, c);
    if (flags & FLAG_VALUE) {
        c->value = unpack_text(u, CELL_VALUE_MAX);
        c->value.data = c->value.data ? c->value.data : "";
    }
    if (fields & ACCOUNT)
        get_account(u, c);
    if (fields & REIGN) {
        c->epoch = (int64_t)unpack_uint(u, INT64_MAX);
        c->url = unpack_text(u, CELL_URL_MAX);
    }
    if (fields & TTLS)
        get_ttls(u, r, c);
}

bool entry_next(struct entry_reader *r, struct cell_command *ret, struct hf_err *err)
{
    struct unpack u = {.at = r->at, .end = r->end};
    struct cell_command c = {0};
    err->code = HF_OK;
    if (r->at == r->end)
        return false;
    c.kind = (enum cell_kind)unpack_byte(&u);
    unsigned flags = unpack_byte(&u);
    if ((unsigned)c.kind >= CELL_KINDS)
        unpack_fail(&u, "there is no such command");
    else
        get_fields(&u, r, flags, &c);
    c.queue = flags & FLAG_QUEUE;
    c.cached = flags & FLAG_CACHED;
    c.by_master = flags & FLAG_BY_MASTER;
    c.finds_knots = flags & FLAG_KNOTS;
    const char *wrong = u.bad ? u.bad : cell_command_check(&c);
    /* Every command has one form. */
    if (!wrong && flags != flags_of(&c, fields_of[c.kind]))
        wrong = "the flags are wrong";
    if (wrong) {
        r->at = r->end;
        hf_err_set(err, HF_INVALID_REQUEST, "a command cannot be read: %s", wrong);
        return false;
    }
    r->at = u.at;
    *ret = c;
    return true;
}

void entry_close(struct entry_reader *r) { vec_close(&r->ttls); }

void entry_chain(const uint8_t previous[CELL_DIGEST_SIZE], const void *data, size_t len,
                 uint8_t ret[CELL_DIGEST_SIZE])
{
    const struct iovec parts[] = {digest_part(previous, CELL_DIGEST_SIZE), digest_part(data, len)};
    digest(parts, 2, ret);
}
