/* See store.h.  The first half writes objects, the second half reads them in the same columns. */
#include "sandbox/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "db/db.h"
#include "sandbox/statements.h"

#define LOG_BYTES_MAX (INT64_C(64) << 20) /* of SQLite's log, before it is copied */

enum store_statement {
#define STATEMENT_ENUM(name, sql) name,
    SANDBOX_STATEMENTS(STATEMENT_ENUM)
#undef STATEMENT_ENUM
        N_STATEMENTS
};
static const char *const statement_texts[N_STATEMENTS] = {
#define STATEMENT_TEXT(name, sql) [name] = (sql),
    SANDBOX_STATEMENTS(STATEMENT_TEXT)
#undef STATEMENT_TEXT
};

struct store {
    struct db *db;
    struct db_stmt *statements[N_STATEMENTS];
};

enum { MANUAL_CAPTURE = 1, AUTOMATIC_METHODS = 2 }; /* flags of an intent */
enum { IS_CAPTURED = 1, IS_RELEASED = 2 };          /* flags of a charge */

/* ---- writing ---- */

static struct db_value text(const char *s) { return db_text(s, s ? strlen(s) : 0); }
static struct db_value buf_text(const struct buf *b)
{
    return db_text(b->data ? b->data : "", b->len);
}
static struct db_value secret(const struct id *id)
{
    return db_bytes(id->secret, sizeof id->secret);
}

static void encode_metadata(const struct metadata *m, struct buf *out)
{
    for (size_t i = 0; i < m->pairs.n; i++)
        form_encode(out, m->pairs.v[i].key, m->pairs.v[i].value);
}

static void encode_int(struct buf *out, const char *name, int64_t value)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%lld", (long long)value);
    form_encode(out, name, digits);
}

static void encode_method(const struct method *m, struct buf *out)
{
    char hex[2 * ID_SECRET_SIZE + 1];
    if (!m->card)
        return;
    hex_format(m->id.secret, sizeof m->id.secret, hex);
    form_encode(out, "card", m->card->name);
    form_encode(out, "secret", hex);
    encode_int(out, "number", m->id.key);
    encode_int(out, "created", m->created_s);
    encode_int(out, "month", m->exp_month);
    encode_int(out, "year", m->exp_year);
}

static enum hf_status put_intent(struct store *s, const struct intent *i, struct hf_err *err)
{
    struct buf metadata = {0}, method = {0}, error_method = {0};
    encode_metadata(&i->metadata, &metadata);
    encode_method(&i->method, &method);
    encode_method(&i->error_method, &error_method);
    const struct db_value row[] = {
        db_int(i->id.key),
        secret(&i->id),
        db_bytes(i->secret, sizeof i->secret),
        db_int(i->account),
        db_int(i->created_s),
        db_int(i->amount),
        db_int(i->received),
        db_int(i->capturable),
        text(i->currency),
        text(intent_status_names[i->status]),
        db_int((i->manual_capture ? MANUAL_CAPTURE : 0) |
               (i->automatic_methods ? AUTOMATIC_METHODS : 0)),
        text(i->description),
        text(i->receipt_email),
        text(i->return_url),
        buf_text(&metadata),
        buf_text(&method),
        text(i->error ? i->error->name : NULL),
        buf_text(&error_method),
        db_int(i->error_charge),
        db_int(i->charge),
        db_int(i->canceled_s),
        text(i->cancellation_reason),
        db_bytes(i->action, sizeof i->action),
        db_int(i->settles_at_ms),
    };
    enum hf_status status = db_exec(s->statements[PUT_INTENT], row, NULL, err);
    buf_close(&metadata);
    buf_close(&method);
    buf_close(&error_method);
    return status;
}

static enum hf_status put_charge(struct store *s, const struct charge *c, struct hf_err *err)
{
    struct buf method = {0};
    encode_method(&c->method, &method);
    const struct db_value row[] = {
        db_int(c->id.key),
        secret(&c->id),
        db_int(c->intent),
        db_int(c->previous),
        db_int(c->refund),
        db_int(c->dispute),
        db_int(c->created_s),
        db_int(c->amount),
        db_int(c->captured),
        db_int(c->refunded),
        db_int(c->dispute_at_ms),
        text(c->decline ? c->decline->name : NULL),
        buf_text(&method),
        db_int((c->is_captured ? IS_CAPTURED : 0) | (c->is_released ? IS_RELEASED : 0)),
    };
    enum hf_status status = db_exec(s->statements[PUT_CHARGE], row, NULL, err);
    buf_close(&method);
    return status;
}

static enum hf_status put_refund(struct store *s, const struct refund *r, struct hf_err *err)
{
    struct buf metadata = {0};
    encode_metadata(&r->metadata, &metadata);
    const struct db_value row[] = {
        db_int(r->id.key),        secret(&r->id),
        db_int(r->charge),        db_int(r->previous),
        db_int(r->created_s),     db_int(r->amount),
        db_int(r->settles_at_ms), text(refund_state_names[r->status]),
        text(r->reason),          buf_text(&metadata),
    };
    enum hf_status status = db_exec(s->statements[PUT_REFUND], row, NULL, err);
    buf_close(&metadata);
    return status;
}

static enum hf_status put_dispute(struct store *s, const struct dispute *d, struct hf_err *err)
{
    const struct db_value row[] = {db_int(d->id.key), secret(&d->id), db_int(d->charge),
                                   db_int(d->created_s), db_int(d->amount)};
    return db_exec(s->statements[PUT_DISPUTE], row, NULL, err);
}

static enum hf_status put_event(struct store *s, const struct stripe_event *e, struct hf_err *err)
{
    const struct db_value row[] = {db_int(e->id.key),
                                   secret(&e->id),
                                   db_int(e->account),
                                   db_int(e->created_s),
                                   text(event_type_names[e->type]),
                                   db_text(e->body, e->len),
                                   db_int(e->attempts),
                                   db_int(e->due_ms)};
    return db_exec(s->statements[PUT_EVENT], row, NULL, err);
}

static enum hf_status put_answer(struct store *s, const struct stored_answer *a, struct hf_err *err)
{
    const struct db_value row[] = {db_int(a->account),
                                   text(a->key),
                                   db_bytes(a->digest, sizeof a->digest),
                                   db_int(a->status),
                                   db_text(a->body, a->len),
                                   db_int(a->stored_ms),
                                   text(a->request_id)};
    return db_exec(s->statements[PUT_ANSWER], row, NULL, err);
}

static enum hf_status drop_answer(struct store *s, const struct stored_answer *a,
                                  struct hf_err *err)
{
    const struct db_value row[] = {db_int(a->account), text(a->key)};
    return db_exec(s->statements[DROP_ANSWER], row, NULL, err);
}

static enum hf_status put_events(struct store *s, const struct bank *b, struct hf_err *err)
{
    enum hf_status status = HF_OK;
    const struct db_value forgotten = db_int(b->n_events - EVENTS_MAX);
    for (size_t i = 0; i < b->changed.events.n && status == HF_OK; i++) {
        const struct stripe_event *e = bank_event(b, b->changed.events.v[i]);
        if (e)
            status = put_event(s, e, err);
    }
    if (status == HF_OK && b->changed.events.n && forgotten.i > 0)
        status = db_exec(s->statements[DROP_EVENTS], &forgotten, NULL, err);
    return status;
}

static enum hf_status put_all(struct store *s, const struct bank *b,
                              const struct store_batch *batch, struct hf_err *err)
{
    enum hf_status status = HF_OK;
    for (size_t i = 0; i < b->changed.intents.n && status == HF_OK; i++)
        status = put_intent(s, bank_intent(b, b->changed.intents.v[i]), err);
    for (size_t i = 0; i < b->changed.charges.n && status == HF_OK; i++)
        status = put_charge(s, bank_charge(b, b->changed.charges.v[i]), err);
    for (size_t i = 0; i < b->changed.refunds.n && status == HF_OK; i++)
        status = put_refund(s, bank_refund(b, b->changed.refunds.v[i]), err);
    for (size_t i = 0; i < b->changed.disputes.n && status == HF_OK; i++)
        status = put_dispute(s, bank_dispute(b, b->changed.disputes.v[i]), err);
    for (size_t i = 0; i < batch->stored.n && status == HF_OK; i++)
        status = put_answer(s, batch->stored.v[i], err);
    for (size_t i = 0; i < batch->forgotten.n && status == HF_OK; i++)
        status = drop_answer(s, batch->forgotten.v[i], err);
    return status == HF_OK ? put_events(s, b, err) : status;
}

enum hf_status store_commit(struct store *s, const struct bank *b, const struct store_batch *batch,
                            struct hf_err *err)
{
    const struct db_driver *driver = s->db->driver;
    struct db_log log;
    enum hf_status status = driver->begin(s->db, err);
    if (status == HF_OK)
        status = put_all(s, b, batch, err);
    if (status == HF_OK)
        status = driver->commit(s->db, err);
    if (status != HF_OK)
        driver->rollback(s->db);
    else if (driver->upkeep.log_bytes(s->db) > LOG_BYTES_MAX)
        (void)!driver->upkeep.maintain(s->db, &log, NULL); /* the next batch tries again */
    return status;
}

/* ---- reading ---- */

/* Something in the file that this program did not write. */
static enum hf_status damaged(struct hf_err *err, const char *what, int64_t number)
{
    return hf_err_set(err, HF_INTERNAL, "the sandbox's file is damaged: %s %lld", what,
                      (long long)number);
}

static const char *column_text(struct db_stmt *st, int column)
{
    size_t len;
    return db_column_data(st, column, &len);
}

static char *column_copy(struct db_stmt *st, int column)
{
    size_t len;
    const char *data = db_column_data(st, column, &len);
    return data ? hf_strndup(data, len) : NULL;
}

static bool column_bytes(struct db_stmt *st, int column, uint8_t *out, size_t size)
{
    size_t len;
    const void *data = db_column_data(st, column, &len);
    if (!data || len != size)
        return false;
    memcpy(out, data, size);
    return true;
}

/* The place of a text in a list of n; -1: it is not there. */
static int column_choice(struct db_stmt *st, int column, const char *const *names, int n)
{
    const char *value = column_text(st, column);
    for (int i = 0; value && i < n; i++)
        if (strcmp(names[i], value) == 0)
            return i;
    return -1;
}

static bool column_form(struct db_stmt *st, int column, struct form *f)
{
    size_t len;
    const char *data = db_column_data(st, column, &len);
    return !data || form_parse(f, data, len, NULL);
}

static bool column_metadata(struct db_stmt *st, int column, struct metadata *m)
{
    struct form f = {0};
    bool ok = column_form(st, column, &f);
    for (size_t i = 0; ok && i < f.entries.n; i++)
        metadata_set(m, form_name(&f, i), form_value(&f, i));
    form_close(&f);
    return ok;
}

static bool form_number(const struct form *f, const char *name, int64_t *ret)
{
    const char *value = form_get(f, name);
    return value && form_parse_int(value, ret);
}

static bool form_secret(const struct form *f, uint8_t out[ID_SECRET_SIZE])
{
    const char *hex = form_get(f, "secret");
    if (!hex || strlen(hex) != 2 * ID_SECRET_SIZE)
        return false;
    for (size_t i = 0; i < ID_SECRET_SIZE; i++) {
        int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

static bool column_method(struct db_stmt *st, int column, struct method *m)
{
    struct form f = {0};
    bool ok = column_form(st, column, &f);
    const char *card = ok ? form_get(&f, "card") : NULL;
    if (card) {
        m->card = card_by_name(card);
        ok = m->card && form_secret(&f, m->id.secret) && form_number(&f, "number", &m->id.key) &&
             form_number(&f, "created", &m->created_s) && form_number(&f, "month", &m->exp_month) &&
             form_number(&f, "year", &m->exp_year);
    }
    form_close(&f);
    return ok;
}

/* A text of a list that ends with NULL; NULL if the column is. */
static const char *column_static(struct db_stmt *st, int column, const char *const *values)
{
    const char *value = column_text(st, column);
    while (value && *values && strcmp(*values, value) != 0)
        values++;
    return value ? *values : NULL;
}

static const struct decline *column_decline(struct db_stmt *st, int column)
{
    const char *name = column_text(st, column);
    return name ? decline_by_name(name) : NULL;
}

static bool read_intent(struct bank *b, struct db_stmt *st)
{
    struct intent *i = hf_alloc(sizeof *i);
    *vec_push(&b->intents) = i;
    i->id.key = db_column_int(st, 0);
    i->account = db_column_int(st, 3);
    i->created_s = db_column_int(st, 4);
    i->amount = db_column_int(st, 5);
    i->received = db_column_int(st, 6);
    i->capturable = db_column_int(st, 7);
    (void)snprintf(i->currency, sizeof i->currency, "%s", column_text(st, 8));
    int status = column_choice(st, 9, intent_status_names, PI_STATUSES);
    i->status = (enum intent_status)(status < 0 ? 0 : status);
    i->manual_capture = db_column_int(st, 10) & MANUAL_CAPTURE;
    i->automatic_methods = db_column_int(st, 10) & AUTOMATIC_METHODS;
    i->description = column_copy(st, 11);
    i->receipt_email = column_copy(st, 12);
    i->return_url = column_copy(st, 13);
    i->error = column_decline(st, 16);
    i->error_charge = db_column_int(st, 18);
    i->charge = db_column_int(st, 19);
    i->canceled_s = db_column_int(st, 20);
    i->cancellation_reason = column_static(st, 21, cancellation_reasons);
    i->settles_at_ms = db_column_int(st, 23);
    if (i->settles_at_ms)
        *vec_push(&b->processing_intents) = i->id.key;
    return status >= 0 && i->id.key == (int64_t)b->intents.n && currency_is_known(i->currency) &&
           column_bytes(st, 1, i->id.secret, sizeof i->id.secret) &&
           column_bytes(st, 2, i->secret, sizeof i->secret) &&
           column_bytes(st, 22, i->action, sizeof i->action) &&
           column_metadata(st, 14, &i->metadata) && column_method(st, 15, &i->method) &&
           column_method(st, 17, &i->error_method);
}

static bool read_charge(struct bank *b, struct db_stmt *st)
{
    struct charge *c = hf_alloc(sizeof *c);
    *vec_push(&b->charges) = c;
    c->id.key = db_column_int(st, 0);
    c->intent = db_column_int(st, 2);
    c->previous = db_column_int(st, 3);
    c->refund = db_column_int(st, 4);
    c->dispute = db_column_int(st, 5);
    c->created_s = db_column_int(st, 6);
    c->amount = db_column_int(st, 7);
    c->captured = db_column_int(st, 8);
    c->refunded = db_column_int(st, 9);
    c->dispute_at_ms = db_column_int(st, 10);
    c->decline = column_decline(st, 11);
    c->is_captured = db_column_int(st, 13) & IS_CAPTURED;
    c->is_released = db_column_int(st, 13) & IS_RELEASED;
    if (c->dispute_at_ms)
        *vec_push(&b->undisputed_charges) = c->id.key;
    return c->id.key == (int64_t)b->charges.n && c->intent >= 1 &&
           (size_t)c->intent <= b->intents.n && c->previous < c->id.key &&
           column_bytes(st, 1, c->id.secret, sizeof c->id.secret) &&
           column_method(st, 12, &c->method) && c->method.card;
}

static bool read_refund(struct bank *b, struct db_stmt *st)
{
    struct refund *r = hf_alloc(sizeof *r);
    *vec_push(&b->refunds) = r;
    r->id.key = db_column_int(st, 0);
    r->charge = db_column_int(st, 2);
    r->previous = db_column_int(st, 3);
    r->created_s = db_column_int(st, 4);
    r->amount = db_column_int(st, 5);
    r->settles_at_ms = db_column_int(st, 6);
    int status = column_choice(st, 7, refund_state_names, RE_STATES);
    r->status = (enum refund_state)(status < 0 ? 0 : status);
    r->reason = column_static(st, 8, refund_reasons);
    if (r->settles_at_ms)
        *vec_push(&b->unsettled_refunds) = r->id.key;
    return status >= 0 && r->id.key == (int64_t)b->refunds.n && r->charge >= 1 &&
           (size_t)r->charge <= b->charges.n && r->previous < r->id.key &&
           column_bytes(st, 1, r->id.secret, sizeof r->id.secret) &&
           column_metadata(st, 9, &r->metadata);
}

static bool read_dispute(struct bank *b, struct db_stmt *st)
{
    struct dispute *d = hf_alloc(sizeof *d);
    *vec_push(&b->disputes) = d;
    d->id.key = db_column_int(st, 0);
    d->charge = db_column_int(st, 2);
    d->created_s = db_column_int(st, 3);
    d->amount = db_column_int(st, 4);
    return d->id.key == (int64_t)b->disputes.n && d->charge >= 1 &&
           (size_t)d->charge <= b->charges.n &&
           column_bytes(st, 1, d->id.secret, sizeof d->id.secret);
}

static bool read_event(struct bank *b, struct db_stmt *st)
{
    struct stripe_event *e = hf_alloc(sizeof *e);
    size_t len;
    const char *body = db_column_data(st, 5, &len);
    int type = column_choice(st, 4, event_type_names, EVENT_TYPES);
    e->id.key = db_column_int(st, 0);
    e->account = db_column_int(st, 2);
    e->created_s = db_column_int(st, 3);
    e->type = (enum event_type)(type < 0 ? 0 : type);
    e->body = hf_strndup(body ? body : "", body ? len : 0);
    e->len = body ? len : 0;
    e->attempts = db_column_int(st, 6);
    e->due_ms = db_column_int(st, 7);
    bool ok = e->id.key > b->n_events && type >= 0 && body &&
              column_bytes(st, 1, e->id.secret, sizeof e->id.secret);
    if (e->id.key < 1) /* it has no place in the ring */
        e->id.key = 1;
    bank_restore_event(b, e);
    return ok;
}

static bool read_answer(struct answers *all, struct db_stmt *st)
{
    uint8_t digest[DIGEST_SIZE];
    const char *key = column_text(st, 1);
    size_t len;
    if (!key || !column_bytes(st, 2, digest, sizeof digest))
        return false;
    struct stored_answer *a = answers_begin(all, db_column_int(st, 0), key, digest);
    (void)snprintf(a->request_id, sizeof a->request_id, "%s", column_text(st, 6));
    const char *body = db_column_data(st, 4, &len);
    answers_store(all, a, (int)db_column_int(st, 3), body ? body : "", body ? len : 0,
                  db_column_int(st, 5));
    return body && a->status > 0;
}

/* Every number that one object has of another must exist. */
static bool references_hold(const struct bank *b)
{
    const int64_t charges = (int64_t)b->charges.n, refunds = (int64_t)b->refunds.n;
    for (size_t i = 0; i < b->intents.n; i++)
        if (b->intents.v[i]->charge > charges || b->intents.v[i]->error_charge > charges)
            return false;
    for (size_t i = 0; i < b->charges.n; i++)
        if (b->charges.v[i]->refund > refunds || b->charges.v[i]->dispute > (int64_t)b->disputes.n)
            return false;
    return true;
}

static enum hf_status load_table(struct store *s, enum store_statement which, const char *what,
                                 bool (*read)(struct bank *b, struct db_stmt *st), struct bank *b,
                                 struct hf_err *err)
{
    struct db_stmt *st = s->statements[which];
    enum hf_status status = db_query(st, NULL, err);
    enum db_step step = DB_DONE;
    while (status == HF_OK && (step = db_step(st, err)) == DB_ROW)
        if (!read(b, st))
            status = damaged(err, what, db_column_int(st, 0));
    st->driver->finish(st);
    return step == DB_FAILED ? err->code : status;
}

static enum hf_status load_answers(struct store *s, struct answers *all, struct hf_err *err)
{
    struct db_stmt *st = s->statements[ALL_ANSWERS];
    enum hf_status status = db_query(st, NULL, err);
    enum db_step step = DB_DONE;
    while (status == HF_OK && (step = db_step(st, err)) == DB_ROW)
        if (!read_answer(all, st))
            status = damaged(err, "answer of account", db_column_int(st, 0));
    st->driver->finish(st);
    return step == DB_FAILED ? err->code : status;
}

static enum hf_status load(struct store *s, struct bank *b, struct answers *answers,
                           struct hf_err *err)
{
    enum hf_status status = load_table(s, ALL_INTENTS, "intent", read_intent, b, err);
    if (status == HF_OK)
        status = load_table(s, ALL_CHARGES, "charge", read_charge, b, err);
    if (status == HF_OK)
        status = load_table(s, ALL_REFUNDS, "refund", read_refund, b, err);
    if (status == HF_OK)
        status = load_table(s, ALL_DISPUTES, "dispute", read_dispute, b, err);
    if (status == HF_OK)
        status = load_table(s, ALL_EVENTS, "event", read_event, b, err);
    if (status == HF_OK && !references_hold(b))
        status =
            damaged(err, "references among objects, of which there are", (int64_t)b->intents.n);
    return status == HF_OK ? load_answers(s, answers, err) : status;
}

/* ---- life ---- */

static enum hf_status prepare(struct store *s, struct hf_err *err)
{
    enum hf_status status = HF_OK;
    for (int i = 0; i < N_STATEMENTS && status == HF_OK; i++)
        status = s->db->driver->prepare(s->db, statement_texts[i], &s->statements[i], err);
    return status;
}

enum hf_status store_open(const char *path, const struct clock *clock, struct bank *b,
                          struct answers *answers, struct store **ret, struct hf_err *err)
{
    const struct db_options options = {.clock = clock, .writer = true};
    struct store *s = hf_alloc(sizeof *s);
    struct buf url = {0};
    buf_printf(&url, "sqlite:%s", path);
    buf_char(&url, '\0');
    enum hf_status status = db_open(url.data, &options, &s->db, err);
    buf_close(&url);
    if (status == HF_OK)
        status = db_migrate(s->db, sandbox_migrations,
                            sizeof sandbox_migrations / sizeof *sandbox_migrations, err);
    if (status == HF_OK)
        status = prepare(s, err);
    if (status == HF_OK)
        status = load(s, b, answers, err);
    if (status != HF_OK) {
        store_close(s);
        return status;
    }
    *ret = s;
    return HF_OK;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    db_close(s->db);
    free(s);
}
