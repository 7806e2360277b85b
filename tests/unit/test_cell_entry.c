/* Names, owners, and commands as the bytes of an entry: what is written is read back, and what is
 * damaged is refused with a reason. */
#include "support/fixtures.h"

#include "cell/entry.h"

static struct cell_text text(const char *data)
{
    return (struct cell_text){.data = data, .len = strlen(data)};
}

/* ---- names and owners ---- */

static bool is_name(const char *name) { return !cell_name_check(name, strlen(name)); }

static void names_are_parts_of_utf8_without_control_characters(void **state)
{
    (void)state;
    char longest[CELL_NAME_MAX + 1];
    memset(longest, 'x', sizeof longest);
    assert_true(is_name("a") && is_name("payments/eu/settle") && is_name("größe/東京"));
    assert_true(is_name("1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16"));
    assert_null(cell_name_check(longest, CELL_NAME_MAX));
    assert_non_null(cell_name_check(longest, CELL_NAME_MAX + 1));
    assert_false(is_name("") || is_name("/") || is_name("/a") || is_name("a/") || is_name("a//b"));
    assert_false(is_name("1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17"));
    assert_false(is_name("a\nb") || is_name("a\x7f") || is_name("a\xc2\x85") || is_name("\xff"));
    assert_non_null(cell_name_check("a\0b", 3));
}

static void an_owner_is_up_to_32_hex_digits(void **state)
{
    (void)state;
    struct cell_owner one, other;
    char out[CELL_OWNER_TEXT_SIZE];
    static const char *const owners[] = {"0", "a", "0a", "fedcba9876543210fedcba9876543210", "123"};
    for (size_t i = 0; i < 5; i++) {
        assert_true(cell_owner_parse(owners[i], strlen(owners[i]), &one));
        cell_owner_format(&one, out);
        assert_string_equal(out, owners[i]);
    }
    assert_true(cell_owner_parse("0a", 2, &one) && cell_owner_parse("a", 1, &other));
    assert_false(cell_owner_equal(&one, &other));
    assert_true(cell_owner_parse("0A", 2, &other) && cell_owner_equal(&one, &other));
    assert_false(cell_owner_parse("", 0, &one) || cell_owner_parse("g", 1, &one));
    assert_false(cell_owner_parse("0fedcba9876543210fedcba9876543210", 33, &one));
}

/* ---- entries ---- */

static const struct entry_head head = {.epoch = 77, .id = {1, 2, 3}, .previous = {9, 8, 7}};
static const struct cell_ttl ttls[] = {{INT64_MAX, CELL_TTL_MAX_MS}, {1, 0}};

/* One command of each kind, with everything that the kind uses. */
static size_t all_kinds(struct cell_command ret[CELL_KINDS])
{
    struct cell_command base = {.session = {.key = INT64_MAX, .secret = {1, 2, 3}},
                                .name = text("a/b")};
    assert_true(cell_owner_parse("00ff", 4, &base.owner));
    size_t n = 0;
    for (int kind = CELL_MASTER; kind < CELL_KINDS; kind++) {
        ret[n] = base;
        ret[n++].kind = (enum cell_kind)kind;
    }
    ret[CELL_MASTER - 1].epoch = 5;
    ret[CELL_MASTER - 1].fence = CELL_FENCE_MAX;
    ret[CELL_MASTER - 1].url = text("http://127.0.0.1:1");
    ret[CELL_RESIGN - 1].ttls = ttls;
    ret[CELL_RESIGN - 1].n_ttls = 2;
    ret[CELL_OPEN - 1].ttl_ms = 1000;
    ret[CELL_OPEN - 1].account = -3;
    ret[CELL_OPEN - 1].limit = UINT32_MAX;
    ret[CELL_OPEN - 1].label = text("host:1");
    struct cell_command *c = &ret[CELL_ACQUIRE - 1];
    c->mode = CELL_INTENTION_SHARED;
    c->slots = CELL_SLOTS_MAX;
    c->priority = -CELL_PRIORITY_MAX;
    c->delay_ms = CELL_DELAY_MAX_MS;
    c->agent = text("thread");
    c->label = text("nightly");
    c->queue = c->cached = c->by_master = c->finds_knots = true;
    c->value = (struct cell_text){.data = "", .len = 0}; /* empty, not absent */
    ret[CELL_RELEASE - 1].fence = 12;
    ret[CELL_VALUE - 1].fence = 13;
    ret[CELL_VALUE - 1].value = (struct cell_text){.data = "a\0b", .len = 3};
    ret[CELL_UNDELAY - 1].fence = 14;
    return n;
}

static void assert_text(const struct cell_text *a, const struct cell_text *b)
{
    assert_int_equal(a->len, b->len);
    if (a->len)
        assert_memory_equal(a->data, b->data, a->len);
}

static void assert_same_request(const struct cell_command *a, const struct cell_command *b)
{
    assert_int_equal(a->mode, b->mode);
    assert_int_equal(a->slots, b->slots);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->delay_ms, b->delay_ms);
    assert_text(&a->agent, &b->agent);
    assert_int_equal(a->queue, b->queue);
    assert_int_equal(a->finds_knots, b->finds_knots);
    assert_int_equal(a->cached, b->cached);
    assert_int_equal(a->by_master, b->by_master);
    assert_int_equal(a->value.data != NULL, b->value.data != NULL);
    assert_text(&a->value, &b->value);
}

/* The fields that all_kinds leaves out are zero in both. */
static void assert_same(const struct cell_command *a, const struct cell_command *b)
{
    assert_int_equal(a->kind, b->kind);
    bool has_session = a->kind >= CELL_OPEN && a->kind <= CELL_VALUE;
    bool has_name = a->kind >= CELL_ACQUIRE && a->kind <= CELL_BREAK;
    if (has_session)
        assert_memory_equal(&a->session, &b->session, sizeof a->session.key + ID_SECRET_SIZE);
    if (has_name)
        assert_text(&a->name, &b->name);
    if (has_session && has_name)
        assert_true(cell_owner_equal(&a->owner, &b->owner));
    assert_same_request(a, b);
    assert_text(&a->label, &b->label);
    assert_text(&a->url, &b->url);
    assert_int_equal(a->ttl_ms, b->ttl_ms);
    assert_int_equal(a->account, b->account);
    assert_int_equal(a->limit, b->limit);
    assert_int_equal(a->fence, b->fence);
    assert_int_equal(a->epoch, b->epoch);
    assert_int_equal(a->n_ttls, b->n_ttls);
    if (a->n_ttls)
        assert_memory_equal(a->ttls, b->ttls, a->n_ttls * sizeof *a->ttls);
}

static void write_all(struct buf *out)
{
    struct cell_command commands[CELL_KINDS];
    size_t n = all_kinds(commands);
    entry_put_head(out, &head);
    for (size_t i = 0; i < n; i++)
        entry_put(out, &commands[i]);
}

/* How many commands can be read; -1: something is wrong, and err says what. */
static int count(const void *data, size_t len, struct hf_err *err)
{
    struct entry_reader r;
    struct entry_head ret;
    struct cell_command c;
    int n = 0;
    *err = (struct hf_err){0};
    if (!entry_open(&r, data, len, &ret, err))
        return -1;
    while (entry_next(&r, &c, err))
        n++;
    entry_close(&r);
    return err->code == HF_OK ? n : -1;
}

static void every_command_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct cell_command commands[CELL_KINDS], c;
    size_t n = all_kinds(commands);
    struct buf bytes = {0};
    struct entry_reader r;
    struct entry_head ret;
    struct hf_err err = {0};
    write_all(&bytes);
    assert_true(entry_open(&r, bytes.data, bytes.len, &ret, &err));
    assert_memory_equal(&ret, &head, sizeof head);
    for (size_t i = 0; i < n; i++) {
        assert_true(entry_next(&r, &c, &err));
        assert_same(&commands[i], &c);
    }
    assert_false(entry_next(&r, &c, &err));
    assert_int_equal(err.code, HF_OK);
    entry_close(&r);
    buf_close(&bytes);
}

static void an_entry_without_commands_is_read(void **state)
{
    (void)state;
    struct buf bytes = {0};
    struct hf_err err;
    entry_put_head(&bytes, &head);
    assert_int_equal(count(bytes.data, bytes.len, &err), 0);
    buf_close(&bytes);
}

/* A cut between two commands is found by the digest of the next entry, not here. */
static void an_entry_that_ends_too_early_is_refused(void **state)
{
    (void)state;
    struct cell_command commands[CELL_KINDS];
    size_t n = all_kinds(commands), at = 0;
    struct buf bytes = {0};
    bool is_end[4096] = {0};
    entry_put_head(&bytes, &head);
    is_end[bytes.len] = true;
    for (size_t i = 0; i < n; i++) {
        entry_put(&bytes, &commands[i]);
        is_end[bytes.len] = true;
    }
    for (; at < bytes.len; at++) {
        char *cut = hf_strndup(bytes.data, at);
        struct hf_err err;
        int found = count(cut, at, &err);
        assert_int_equal(found >= 0, is_end[at]);
        assert_true(found >= 0 || err.msg[0]);
        free(cut);
    }
    buf_close(&bytes);
}

static void damaged_bytes_are_refused_or_are_another_entry(void **state)
{
    (void)state;
    struct buf bytes = {0}, again = {0};
    write_all(&bytes);
    for (size_t i = 0; i < bytes.len * 8; i++) {
        struct hf_err err = {0};
        struct entry_reader r;
        struct entry_head ret;
        struct cell_command c;
        char *copy = hf_strndup(bytes.data, bytes.len);
        copy[i / 8] = (char)(copy[i / 8] ^ 1 << i % 8);
        again.len = 0;
        if (entry_open(&r, copy, bytes.len, &ret, &err)) {
            entry_put_head(&again, &ret);
            while (entry_next(&r, &c, &err))
                entry_put(&again, &c);
            if (err.code == HF_OK) { /* every entry has one form */
                assert_int_equal(again.len, bytes.len);
                assert_memory_equal(again.data, copy, bytes.len);
            }
            entry_close(&r);
        }
        assert_true(err.code == HF_OK || err.msg[0]);
        free(copy);
    }
    buf_close(&bytes);
    buf_close(&again);
}

static void the_largest_command_fits(void **state)
{
    (void)state;
    struct cell_command commands[CELL_KINDS];
    static char value[CELL_VALUE_MAX], name[CELL_NAME_MAX], label[CELL_LABEL_MAX];
    static struct cell_ttl many[CELL_TTLS_MAX];
    struct buf bytes = {0};
    all_kinds(commands);
    memset(name, 'n', sizeof name);
    memset(label, 'a', sizeof label);
    struct cell_command *c = &commands[CELL_ACQUIRE - 1];
    c->value = (struct cell_text){value, sizeof value};
    c->name = (struct cell_text){name, sizeof name};
    c->agent = (struct cell_text){label, CELL_AGENT_MAX};
    c->label = (struct cell_text){label, sizeof label};
    entry_put(&bytes, c);
    assert_true(bytes.len <= CELL_COMMAND_MAX);
    for (size_t i = 0; i < CELL_TTLS_MAX; i++)
        many[i] = (struct cell_ttl){INT64_MAX - (int64_t)i, CELL_TTL_MAX_MS};
    c = &commands[CELL_RESIGN - 1];
    c->ttls = many;
    c->n_ttls = CELL_TTLS_MAX;
    bytes.len = 0;
    entry_put_head(&bytes, &head);
    entry_put(&bytes, c);
    assert_true(bytes.len <= CELL_ENTRY_MAX);
    struct hf_err err;
    assert_int_equal(count(bytes.data, bytes.len, &err), 1);
    buf_close(&bytes);
}

static void what_is_out_of_range_is_no_command(void **state)
{
    (void)state;
    struct cell_command commands[CELL_KINDS], c;
    all_kinds(commands);
    for (size_t i = 0; i + 1 < CELL_KINDS; i++)
        assert_null(cell_command_check(&commands[i]));
    const struct cell_command *acquire = &commands[CELL_ACQUIRE - 1];
#define REFUSED(field, bad)                                                                        \
    do {                                                                                           \
        c = *acquire;                                                                              \
        c.field = (bad);                                                                           \
        assert_non_null(cell_command_check(&c));                                                   \
    } while (0)
    REFUSED(session.key, 0);
    REFUSED(owner.digits, 0);
    REFUSED(owner.digits, 33);
    REFUSED(owner.digits, 1); /* the number has two */
    REFUSED(mode, CELL_MODES);
    REFUSED(slots, CELL_SLOTS_MAX + 1);
    REFUSED(priority, CELL_PRIORITY_MAX + 1);
    REFUSED(delay_ms, CELL_DELAY_MAX_MS + 1);
    REFUSED(value.len, CELL_VALUE_MAX + 1);
    REFUSED(name, text("a//b"));
    REFUSED(agent, ((struct cell_text){"a\0b", 3}));
    REFUSED(label, ((struct cell_text){"a\0b", 3}));
    REFUSED(kind, CELL_NOTHING);
    REFUSED(kind, CELL_KINDS);
    REFUSED(fence, -1);
#undef REFUSED
}

static void the_chain_depends_on_every_byte_of_every_entry(void **state)
{
    (void)state;
    uint8_t zero[CELL_DIGEST_SIZE] = {0}, one[CELL_DIGEST_SIZE], two[CELL_DIGEST_SIZE];
    entry_chain(zero, "abc", 3, one);
    entry_chain(zero, "abd", 3, two);
    assert_memory_not_equal(one, two, sizeof one);
    entry_chain(one, "abc", 3, two);
    assert_memory_not_equal(one, two, sizeof one);
    entry_chain(zero, "abc", 3, two);
    assert_memory_equal(one, two, sizeof one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_parts_of_utf8_without_control_characters),
        cmocka_unit_test(an_owner_is_up_to_32_hex_digits),
        cmocka_unit_test(every_command_is_read_as_it_was_written),
        cmocka_unit_test(an_entry_without_commands_is_read),
        cmocka_unit_test(an_entry_that_ends_too_early_is_refused),
        cmocka_unit_test(damaged_bytes_are_refused_or_are_another_entry),
        cmocka_unit_test(the_largest_command_fits),
        cmocka_unit_test(what_is_out_of_range_is_no_command),
        cmocka_unit_test(the_chain_depends_on_every_byte_of_every_entry),
    };
    return cmocka_run_group_tests_name("cell_entry", tests, NULL, NULL);
}
