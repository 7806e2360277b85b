/* Claims about src/base: statuses and verdicts, clocks, randomness, ids, buffers, vectors, log
 * lines, URLs, metrics, gzip and colours.  test_heap.c and test_text.c cover heap, UTF-8 and
 * durations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/backoff.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/color.h"
#include "base/digest.h"
#include "base/gzip.h"
#include "base/hex.h"
#include "base/id.h"
#include "base/json_put.h"
#include "base/local_host.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/status.h"
#include "base/vec.h"
#include "model/verdict.h"
#include "net/pg_url.h"

/* ---- helpers ---- */

static void assert_buf(struct buf *b, const char *want)
{
    buf_char(b, '\0');
    assert_string_equal(b->data, want);
    assert_int_equal(b->len, strlen(want) + 1);
    buf_close(b);
}

/* Runs `act` with stderr redirected into a pipe.  `out` receives what `act` wrote, which must fit
 * into a pipe. */
static void capture_stderr(void (*act)(void), char *out, size_t size)
{
    int ends[2], saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_true(saved >= 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    close(ends[1]);
    act();
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    size_t len = 0;
    for (ssize_t n; len < size - 1 && (n = read(ends[0], out + len, size - 1 - len)) > 0;)
        len += (size_t)n;
    out[len] = '\0';
    close(ends[0]);
}

/* ---- status ---- */

static void every_verdict_has_words_and_failures_keep_their_numbers(void **state)
{
    (void)state;
    for (enum verdict v = 0; v < VERDICT_COUNT; v++) {
        assert_true(strlen(verdict_name(v)) > 0);
        assert_true(strlen(verdict_text(v)) > 0);
        for (enum verdict other = v + 1; other < VERDICT_COUNT; other++)
            assert_string_not_equal(verdict_name(v), verdict_name(other));
    }
    for (enum hf_status s = 0; s < HF_STATUS_COUNT; s++)
        assert_string_equal(hf_status_name(s), verdict_name(verdict_of(s)));
    assert_string_equal(hf_status_name(HF_OUTCOME_UNKNOWN), "OUTCOME_UNKNOWN");
    assert_string_equal(verdict_text(VERDICT_HOLD_EXPIRED), "the hold has expired");
    assert_int_equal(verdict_of(HF_OK), VERDICT_OK);
    assert_true(verdict_is_success(VERDICT_CREATED) && !verdict_is_success(VERDICT_SEAT_TAKEN));
}

static void setting_an_error_fills_it_and_returns_its_code(void **state)
{
    (void)state;
    struct hf_err err = {0};
    assert_int_equal(hf_err_set(&err, HF_INTERNAL, "row %d of %s", 3, "seat"), HF_INTERNAL);
    assert_int_equal(err.code, HF_INTERNAL);
    assert_string_equal(err.msg, "row 3 of seat");
    assert_int_equal(hf_err_set(NULL, HF_OUTCOME_UNKNOWN, "nobody %s", "listens"),
                     HF_OUTCOME_UNKNOWN);
}

static void a_long_error_message_is_cut_and_terminated(void **state)
{
    (void)state;
    char text[600];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct hf_err err;
    assert_int_equal(hf_err_set(&err, HF_INTERNAL, "%s", text), HF_INTERNAL);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
}

/* Runs `act` in a child process and returns its wait status. */
static int status_of_child(void (*act)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr))
            _exit(3);
        act();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void check_true(void) { hf_check(1 + 1 == 2); }
static void check_false(void) { hf_check(1 + 1 == 3); }

/* The sanitizers' allocators handle exhausted memory in their own way. */
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
static void take_all_memory(void)
{
    volatile size_t size = PTRDIFF_MAX;
    void *volatile p = hf_alloc(size);
    (void)p;
}

static void running_out_of_memory_aborts(void **state)
{
    (void)state;
    int status = status_of_child(take_all_memory);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
#endif

static void a_broken_assumption_aborts_in_every_build(void **state)
{
    (void)state;
    assert_int_equal(status_of_child(check_true), 0);
    int status = status_of_child(check_false);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void an_allocation_of_nothing_is_not_null(void **state)
{
    (void)state;
    void *nothing = hf_alloc(0);
    assert_non_null(nothing);
    nothing = hf_realloc(nothing, 0);
    assert_non_null(nothing);
    free(nothing);
}

static void memory_is_zeroed_and_survives_growth(void **state)
{
    (void)state;
    char *p = hf_alloc(64);
    for (int i = 0; i < 64; i++)
        assert_int_equal(p[i], 0);
    memcpy(p, "kept", 5);
    p = hf_realloc(p, 4096);
    assert_string_equal(p, "kept");
    free(p);
}

static void a_copied_string_ends_where_told(void **state)
{
    (void)state;
    char *copy = hf_strndup("Stalls-A-12", 6);
    assert_string_equal(copy, "Stalls");
    free(copy);
    copy = hf_strndup(NULL, 0);
    assert_string_equal(copy, "");
    free(copy);
}

static void a_vector_grows_zeroed_and_keeps_its_memory_when_cleared(void **state)
{
    (void)state;
    VEC(struct id) ids = {0};
    for (int i = 1; i <= 100; i++) {
        struct id *id = vec_push(&ids);
        assert_int_equal(id->key, 0);
        id->key = i;
    }
    assert_int_equal(ids.n, 100);
    assert_int_equal(ids.v[0].key, 1);
    assert_int_equal(ids.v[99].key, 100);
    struct id *memory = ids.v;
    vec_clear(&ids);
    assert_ptr_equal(vec_push(&ids), memory);
    assert_int_equal(ids.v[0].key, 0);
    vec_close(&ids);
    assert_null(ids.v);
}

/* ---- clock ---- */

static void the_system_clocks_run_forwards(void **state)
{
    (void)state;
    const struct clock *c = &clock_system;
    int64_t monotonic = clock_monotonic_us(c), boot = clock_boot_us(c);
    assert_true(clock_monotonic_us(c) >= monotonic);
    assert_true(clock_boot_us(c) >= boot);
    assert_true(boot > 0 && monotonic > 0);
    int64_t now_s = time(NULL);
    assert_true(clock_wall_us(c) / 1000000 >= now_s - 1);
}

static void a_fake_clock_stands_still_until_told(void **state)
{
    (void)state;
    struct clock_fake fake;
    clock_fake_init(&fake, 5000);
    const struct clock *c = &fake.clock;
    int64_t boot = clock_boot_us(c);
    assert_int_equal(clock_wall_us(c), 5000);
    assert_int_equal(clock_boot_us(c), boot);
    assert_int_equal(clock_monotonic_us(c), boot);

    clock_fake_advance(&fake, 70);
    assert_int_equal(clock_wall_us(c), 5070);
    assert_int_equal(clock_boot_us(c), boot + 70);
    assert_int_equal(clock_monotonic_us(c), boot + 70);
}

static void stepping_a_fake_clock_moves_the_wall_alone(void **state)
{
    (void)state;
    struct clock_fake fake;
    clock_fake_init(&fake, 5000);
    int64_t boot = clock_boot_us(&fake.clock);
    clock_fake_step(&fake, -4000);
    assert_int_equal(clock_wall_us(&fake.clock), 1000);
    assert_int_equal(clock_boot_us(&fake.clock), boot);
}

static void assert_time(int64_t ms, const char *want)
{
    char text[CLOCK_TEXT_SIZE];
    clock_format_ms(ms, text);
    assert_string_equal(text, want);
}

static void times_are_rfc_3339_with_milliseconds(void **state)
{
    (void)state;
    assert_time(0, "1970-01-01T00:00:00.000Z");
    assert_time(1, "1970-01-01T00:00:00.001Z");
    assert_time(951782400000 - 1, "2000-02-28T23:59:59.999Z");
    assert_time(951782400000, "2000-02-29T00:00:00.000Z");
    assert_time(951868800000, "2000-03-01T00:00:00.000Z");
    assert_time(4107456000000, "2100-02-28T00:00:00.000Z");
    assert_time(4107542400000, "2100-03-01T00:00:00.000Z");
    assert_time(1794705404123, "2026-11-15T01:16:44.123Z");
}

static void times_that_do_not_fit_show_as_the_first_or_last_that_does(void **state)
{
    (void)state;
    assert_time(-1, "1970-01-01T00:00:00.000Z");
    assert_time(INT64_MIN, "1970-01-01T00:00:00.000Z");
    assert_time(253402300799999, "9999-12-31T23:59:59.999Z");
    assert_time(253402300800000, "9999-12-31T23:59:59.999Z");
    assert_time(INT64_MAX, "9999-12-31T23:59:59.999Z");
}

static void a_local_time_has_its_offset(void **state)
{
    (void)state;
    static const struct {
        int64_t offset_min;
        const char *want;
    } cases[] = {{0, "2000-02-28T23:59:59.999Z"},
                 {60, "2000-02-29T00:59:59.999+01:00"},
                 {-570, "2000-02-28T14:29:59.999-09:30"},
                 {1439, "2000-02-29T23:58:59.999+23:59"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[CLOCK_LOCAL_SIZE];
        size_t len = clock_format_local(951782400000 - 1, cases[i].offset_min, text);
        assert_string_equal(text, cases[i].want);
        assert_int_equal(len, strlen(text));
    }
}

static void every_day_until_2500_agrees_with_the_c_library(void **state)
{
    (void)state;
    for (time_t day = 0; day < (time_t)531 * 366; day++) {
        time_t second = day * 86400 + day % 86400;
        struct tm tm;
        char want[CLOCK_TEXT_SIZE], got[CLOCK_TEXT_SIZE];
        gmtime_r(&second, &tm);
        strftime(want, sizeof want, "%Y-%m-%dT%H:%M:%S.007Z", &tm);
        clock_format_ms((int64_t)second * 1000 + 7, got);
        if (strcmp(got, want) != 0)
            assert_string_equal(got, want);
    }
}

/* ---- random ---- */

static void the_same_seed_gives_the_same_bytes(void **state)
{
    (void)state;
    struct random a, b, c;
    random_init_seeded(&a, 42);
    random_init_seeded(&b, 42);
    random_init_seeded(&c, 43);
    uint8_t x[3000], y[3000], z[3000];
    random_bytes(&a, x, sizeof x);
    for (size_t i = 0; i < sizeof y; i += 12) /* in other portions, across refills */
        random_bytes(&b, y + i, 12);
    random_bytes(&c, z, sizeof z);
    assert_memory_equal(x, y, sizeof x);
    assert_memory_not_equal(x, z, sizeof x);
}

static void seed_zero_is_still_repeatable(void **state)
{
    (void)state;
    struct random a, b;
    random_init_seeded(&a, 0);
    random_init_seeded(&b, 0);
    for (int i = 0; i < 1000; i++)
        assert_true(random_u64(&a) == random_u64(&b));
}

static void system_randomness_does_not_repeat(void **state)
{
    (void)state;
    struct random a, b;
    random_init_system(&a);
    random_init_system(&b);
    uint64_t seen[200];
    for (size_t i = 0; i < 200; i++) {
        seen[i] = random_u64(i % 2 ? &a : &b);
        for (size_t j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
    }
}

static void bytes_handed_out_are_wiped_from_the_pool(void **state)
{
    (void)state;
    struct random r;
    random_init_system(&r);
    uint8_t out[16], zero[16] = {0};
    random_bytes(&r, out, sizeof out);
    assert_memory_equal(r.pool, zero, sizeof zero);
    assert_memory_not_equal(out, zero, sizeof zero);
}

static void random_below_stays_below_and_reaches_every_value(void **state)
{
    (void)state;
    struct random r;
    random_init_seeded(&r, 7);
    int counts[6] = {0};
    for (int i = 0; i < 6000; i++)
        counts[random_below(&r, 6)]++;
    for (int i = 0; i < 6; i++)
        assert_in_range(counts[i], 850, 1150);
    assert_int_equal(random_below(&r, 1), 0);
    const uint64_t most = UINT64_MAX / 2 + 2; /* nearly every second draw is rejected */
    for (int i = 0; i < 100; i++)
        assert_true(random_below(&r, most) < most);
}

/* ---- id ---- */

#define ONE "00000000001"              /* key 1 */
#define KEY_MAX "AzL8n0Y58m7"          /* 2^63 - 1 */
#define ZERO "00000000000000000"       /* secret 0 */
#define SECRET_MAX "1f2SI9UJPXvb7vdJ1" /* 2^96 - 1 */

static void assert_id_text(const struct id *id, const char *want)
{
    char text[ID_TEXT_SIZE];
    struct id back;
    assert_int_equal(id_format(text, "hold_", id), strlen(want));
    assert_string_equal(text, want);
    assert_true(id_parse(text, strlen(text), "hold_", &back));
    assert_true(back.key == id->key);
    assert_memory_equal(back.secret, id->secret, ID_SECRET_SIZE);
}

static void ids_have_one_text_from_the_smallest_to_the_largest(void **state)
{
    (void)state;
    struct id id = {.key = 1};
    assert_id_text(&id, "hold_" ONE ZERO);
    id.key = INT64_MAX;
    memset(id.secret, 0xff, ID_SECRET_SIZE);
    assert_id_text(&id, "hold_" KEY_MAX SECRET_MAX);
    id.key = 417;
    for (uint8_t i = 0; i < ID_SECRET_SIZE; i++)
        id.secret[i] = (uint8_t)(i + 1);
    assert_id_text(&id, "hold_0000000006j00P9MVMcaXWHEX8yi");
}

static void random_ids_come_back_as_they_were(void **state)
{
    (void)state;
    struct random r;
    random_init_seeded(&r, 1);
    for (int i = 0; i < 20000; i++) {
        struct id id = {.key = (int64_t)(1 + random_below(&r, INT64_MAX)) >> random_below(&r, 60)};
        struct id back;
        char text[ID_TEXT_SIZE];
        id.key += id.key == 0;
        random_bytes(&r, id.secret, sizeof id.secret);
        size_t len = id_format(text, "evt_", &id);
        assert_int_equal(len, strlen("evt_") + ID_BODY_LEN);
        assert_true(id_parse(text, len, "evt_", &back));
        assert_true(back.key == id.key && id_secret_equal(back.secret, id.secret));
    }
}

static void id_with_a_flipped_character_is_unknown(void **state)
{
    (void)state;
    struct random r;
    random_init_seeded(&r, 2);
    struct id id = {.key = 123456789}, other;
    random_bytes(&r, id.secret, sizeof id.secret);
    char text[ID_TEXT_SIZE];
    size_t len = id_format(text, "bkg_", &id);
    for (size_t i = 0; i < len; i++) {
        char kept = text[i];
        for (int c = 0; c < 256; c++) {
            text[i] = (char)c;
            if (text[i] != kept && id_parse(text, len, "bkg_", &other))
                assert_false(other.key == id.key && id_secret_equal(other.secret, id.secret));
        }
        text[i] = kept;
    }
}

static bool parses(const char *text)
{
    struct id ret = {.key = -7};
    bool ok = id_parse(text, strlen(text), "hold_", &ret);
    assert_true(ok || ret.key == -7); /* untouched on failure */
    return ok;
}

static void text_that_no_id_has_is_refused(void **state)
{
    (void)state;
    assert_true(parses("hold_" ONE ZERO));
    assert_false(parses(""));
    assert_false(parses("hold_"));
    assert_false(parses("evt_" ONE ZERO));
    assert_false(parses("evt__" ONE ZERO));
    assert_false(parses("hold_" ONE ZERO "0"));
    assert_false(parses("hold_" ONE "0000000000000000")); /* one character short */
    assert_false(parses("hold_00000000000" ZERO));        /* key 0 */
    assert_true(parses("hold_" KEY_MAX ZERO));
    assert_false(parses("hold_AzL8n0Y58m8" ZERO)); /* key 2^63 */
    assert_false(parses("hold_zzzzzzzzzzz" ZERO));
    assert_true(parses("hold_" ONE SECRET_MAX));
    assert_false(parses("hold_" ONE "1f2SI9UJPXvb7vdJ2")); /* secret 2^96 */
    assert_false(parses("hold_" ONE "zzzzzzzzzzzzzzzzz"));
    assert_false(parses("hold_-0000000001" ZERO));
    assert_false(parses("hold_0000000001 " ZERO));
    assert_false(parses("hold_" ONE "000 0000000000000"));
    assert_false(parses("hold_" ONE "0000000000000000\n"));
    assert_false(parses("hold_" ONE "000000000000000\xc3\xa9"));
    struct id ret;
    assert_false(id_parse("hold_" ONE "0000\0"
                          "000000000000",
                          33, "hold_", &ret));
}

static void secrets_are_equal_only_when_every_byte_is(void **state)
{
    (void)state;
    uint8_t a[ID_SECRET_SIZE] = {0}, b[ID_SECRET_SIZE] = {0};
    assert_true(id_secret_equal(a, b));
    for (int i = 0; i < ID_SECRET_SIZE; i++) {
        b[i] = 0x80;
        assert_false(id_secret_equal(a, b));
        b[i] = 0;
    }
}

/* ---- buf ---- */

static void appends_follow_one_another_through_growth(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_put(&b, NULL, 0);
    assert_null(b.data);
    for (int i = 0; i < 1000; i++)
        buf_lit(&b, "abc");
    buf_str(&b, "def");
    buf_char(&b, '!');
    assert_int_equal(b.len, 3004);
    assert_memory_equal(b.data, "abcabc", 6);
    assert_memory_equal(b.data + 2997, "abcdef!", 7);
    buf_close(&b);
    assert_null(b.data);
    assert_int_equal(b.len + b.cap, 0);
    buf_close(&b);
}

static void reserved_room_is_not_moved_by_the_appends_it_was_for(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_reserve(&b, 100000);
    char *data = b.data;
    assert_int_equal(b.len, 0);
    for (int i = 0; i < 100000; i++)
        buf_char(&b, 'x');
    assert_ptr_equal(b.data, data);
    buf_close(&b);
}

static void integers_are_written_from_the_least_to_the_greatest(void **state)
{
    (void)state;
    struct buf b = {0};
    const int64_t values[] = {0, 7, -7, 10, 99, 100, -1000, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        buf_int(&b, values[i]);
        buf_char(&b, ' ');
    }
    assert_buf(&b, "0 7 -7 10 99 100 -1000 9223372036854775807 -9223372036854775808 ");
}

static void printf_grows_the_buffer_as_needed(void **state)
{
    (void)state;
    struct buf b = {0};
    char text[1000];
    memset(text, 'y', sizeof text);
    buf_printf(&b, "%d-%s;", 5, "five");
    buf_printf(&b, "%.*s", (int)sizeof text, text);
    assert_int_equal(b.len, 7 + sizeof text);
    assert_memory_equal(b.data, "5-five;yyy", 10);
    buf_close(&b);
}

static void assert_json(const char *text, size_t len, const char *want)
{
    struct buf b = {0};
    buf_json(&b, text, len);
    assert_buf(&b, want);
}

static void json_strings_escape_what_json_forbids_and_nothing_else(void **state)
{
    (void)state;
    assert_json(NULL, 0, "\"\"");
    assert_json("Stalls-A-12", 11, "\"Stalls-A-12\"");
    assert_json("a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\"");
    assert_json("\"", 1, "\"\\\"\"");
    assert_json("\n\r\t\b\f", 5, "\"\\n\\r\\t\\b\\f\"");
    assert_json("\0\1\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\x7f\"");
    assert_json("Gr\xc3\xbc\xc3\x9f"
                "e \xf0\x9f\x8e\xab",
                12,
                "\"Gr\xc3\xbc\xc3\x9f"
                "e \xf0\x9f\x8e\xab\"");
}

static void json_escapes_every_byte_alike_at_every_place(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        struct buf alone = {0}, b = {0};
        buf_json(&alone, (char[]){(char)c}, 1);
        for (size_t at = 0; at < 20; at++) {
            char text[20];
            memset(text, 'x', sizeof text);
            text[at] = (char)c;
            b.len = 0;
            buf_json(&b, text, sizeof text);
            assert_int_equal(b.len, sizeof text - 1 + alone.len);
            assert_memory_equal(b.data + 1 + at, alone.data + 1, alone.len - 2);
            assert_int_equal(b.data[b.len - 1], '"');
        }
        buf_close(&alone);
        buf_close(&b);
    }
}

static void a_json_string_of_escapes_only_fits(void **state)
{
    (void)state;
    struct buf b = {0};
    char text[500] = {0};
    buf_json(&b, text, sizeof text);
    assert_int_equal(b.len, 2 + 6 * sizeof text);
    buf_close(&b);
}

static void json_times_are_quoted(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_json_time(&b, 951782400123);
    buf_char(&b, ',');
    buf_json_time(&b, 0);
    assert_buf(&b, "\"2000-02-29T00:00:00.123Z\",\"1970-01-01T00:00:00.000Z\"");
}

static void json_members_get_commas_between_them_and_nowhere_else(void **state)
{
    (void)state;
    struct buf b = {0};
    const struct id id = {.key = 1};
    buf_lit(&b, "data: ");
    json_open(&b, NULL, '{');
    json_put_text(&b, "a", "[\"");
    json_put_text(&b, "b", NULL);
    json_put_text_or_null(&b, "c", "");
    json_open(&b, "list", '[');
    json_put_int(&b, NULL, -1);
    json_put_bytes(&b, NULL, "xyz", 2);
    json_open(&b, NULL, '{');
    buf_lit(&b, "}]");
    json_put_bool(&b, "yes", true);
    json_put_int_or_null(&b, "none", 0);
    json_put_time(&b, "at", 0);
    json_put_time_or_null(&b, "until", 0);
    json_put_name(&b, "id");
    json_put_id(&b, NULL, "evt_", &id);
    buf_char(&b, '}');
    assert_buf(&b,
               "data: {\"a\":\"[\\\"\",\"b\":null,\"c\":null,\"list\":[-1,\"xy\",{}],\"yes\":true,"
               "\"none\":null,\"at\":\"1970-01-01T00:00:00.000Z\",\"until\":null,"
               "\"id\":\"evt_0000000000100000000000000000\"}");
}

/* ---- log ---- */

static void log_awkward_values(void)
{
    errno = ENOENT;
    log_write(LOG_WARN, "commit \"failed\"", "why", "disk full", "table", "seat", "text",
              "a\nlevel=error \"x\"\x1b[0m\\", "pair", "a=b", "empty", "", "none", (char *)NULL,
              "n", LOG_INT(-5), "big", LOG_INT(INT64_MIN), NULL);
    assert_int_equal(errno, ENOENT);
}

static void a_log_line_is_one_line_whatever_the_values(void **state)
{
    (void)state;
    char line[1000];
    capture_stderr(log_awkward_values, line, sizeof line);
    assert_memory_equal(line, "ts=2", 4);
    assert_string_equal(line + strlen("ts=2026-11-15T01:16:44.123Z"),
                        " level=warn msg=\"commit \\\"failed\\\"\" why=\"disk full\" table=seat"
                        " text=\"a\\nlevel=error \\\"x\\\"\\u001b[0m\\\\\" pair=\"a=b\" empty=\"\""
                        " none=\"\" n=-5 big=-9223372036854775808\n");
}

static void log_at_every_level(void)
{
    for (enum log_level level = LOG_DEBUG; level <= LOG_OFF; level++)
        log_write(level, "m", NULL);
}

static void lines_below_the_level_are_not_written(void **state)
{
    (void)state;
    char lines[1000];
    log_set_level(LOG_WARN);
    assert_false(log_enabled(LOG_INFO));
    assert_true(log_enabled(LOG_WARN));
    capture_stderr(log_at_every_level, lines, sizeof lines);
    assert_null(strstr(lines, "level=info"));
    assert_non_null(strstr(lines, "level=warn msg=\"m\"\n"));
    assert_non_null(strstr(lines, "level=error msg=\"m\"\n"));

    log_set_level(LOG_OFF);
    capture_stderr(log_at_every_level, lines, sizeof lines);
    assert_string_equal(lines, "");
    log_set_level(LOG_DEBUG);
    assert_true(log_enabled(LOG_DEBUG));
    assert_false(log_enabled(LOG_OFF));
    log_set_level(LOG_INFO);
}

static void log_levels_are_read_by_name(void **state)
{
    (void)state;
    enum log_level level = LOG_OFF;
    assert_true(log_parse_level("debug", &level) && level == LOG_DEBUG);
    assert_true(log_parse_level("error", &level) && level == LOG_ERROR);
    assert_false(log_parse_level("Error", &level));
    assert_false(log_parse_level("", &level));
    assert_int_equal(level, LOG_ERROR);
}

/* ---- URLs ---- */

static void a_postgres_url_that_cannot_be_is_told_and_no_other(void **state)
{
    (void)state;
    static const char *const good[] = {
        "postgres://",
        "postgres:///db",
        "postgresql://me@/db?host=/run/x",
        "postgres://me:p%40ss@host:5432/db",
        "postgres://me:p:ss@host/db",
        "postgres://a:1,b:2,[::1]:3,c/db?target_session_attrs=any",
        "postgres://host:/db",
        "postgres://me@host/db?application_name=a@b:c",
        "postgres://[::1]/db",
    };
    static const char *const bad[] = {
        "",
        "postgres:/x",
        "postgres",
        "redis://host",
        "postgres://[",
        "postgres://a,[::1/x",
        "postgres://a@b@c/x",
        "postgres://me:%4@h/x",
        "postgres://me:%@h/x",
        "postgres://host:x/db",
        "postgres://host:0/db",
        "postgres://a:1,b:65536/db",
        "postgres://host:123456/db",
        "postgres://[::1]:x/db",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (pg_url_fault(good[i]))
            fail_msg("%s: %s", good[i], pg_url_fault(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!pg_url_fault(bad[i]))
            fail_msg("%s was taken", bad[i]);
}

static void hosts_of_this_machine_are_told_from_others(void **state)
{
    (void)state;
    static const char *const local[] = {
        "",          "/run/postgresql", "@abstract", "localhost",
        "LocalHost", "127.0.0.1",       "127.8.9.1", "::1",
    };
    static const char *const others[] = {
        "db",
        "localhost.example",
        "128.0.0.1",
        "10.0.0.1",
        "0.0.0.0",
        "::",
        "127.0.0.1.example",
        "127.1",
        "fe80::1",
        "::2",
        "::ffff:10.0.0.1",
        "[::1]",
    };
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (!host_is_local(local[i]))
            fail_msg("%s is this machine", local[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (host_is_local(others[i]))
            fail_msg("%s need not be this machine", others[i]);
}

/* ---- metrics ---- */

static void collect_cpu(void *gauge) { gauge_set(gauge, 1500000); }
static void collect_files(void *gauge) { gauge_add(gauge, 12); }

static void metrics_are_rendered_as_prometheus_text(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    char labels[] = "result=\"granted\"";
    struct counter *granted = metrics_counter(m, "requests_total", labels, "Requests.");
    labels[8] = 'G'; /* the caller's text may change afterwards */
    struct counter *taken = metrics_counter(m, "requests_total", "result=\"taken\"", "Requests.");
    struct gauge *depth = metrics_gauge(m, "queue_depth", NULL, "Commands queued.");
    const double bounds[] = {0.0001, 0.5, 2.5};
    struct histogram *h =
        metrics_histogram(m, "hold_seconds", "route=\"/\"", "Time of a hold.", 1e-6, bounds, 3);
    struct gauge *cpu = metrics_measured(m, "cpu_seconds_total", "CPU.", true, 1e-6);
    struct gauge *files = metrics_measured(m, "files", "Files.", false, 1);
    metrics_collector(m, METRICS_AT_RENDER, collect_cpu, cpu);
    metrics_collector(m, METRICS_AT_MEASURE, collect_files, files);
    metrics_measure(m);
    counter_add(granted, 3);
    counter_add(granted, UINT64_MAX - 3);
    counter_add(taken, 41);
    gauge_set(depth, 5);
    gauge_add(depth, -8);
    histogram_observe(h, 0);
    histogram_observe(h, 100); /* a bucket includes its upper bound */
    histogram_observe(h, 101);
    histogram_observe(h, 2500001);

    struct buf b = {0};
    metrics_render(m, &b);
    assert_buf(&b, "# HELP requests_total Requests.\n"
                   "# TYPE requests_total counter\n"
                   "requests_total{result=\"granted\"} 18446744073709551615\n"
                   "requests_total{result=\"taken\"} 41\n"
                   "# HELP queue_depth Commands queued.\n"
                   "# TYPE queue_depth gauge\n"
                   "queue_depth -3\n"
                   "# HELP hold_seconds Time of a hold.\n"
                   "# TYPE hold_seconds histogram\n"
                   "hold_seconds_bucket{route=\"/\",le=\"0.0001\"} 2\n"
                   "hold_seconds_bucket{route=\"/\",le=\"0.5\"} 3\n"
                   "hold_seconds_bucket{route=\"/\",le=\"2.5\"} 3\n"
                   "hold_seconds_bucket{route=\"/\",le=\"+Inf\"} 4\n"
                   "hold_seconds_sum{route=\"/\"} 2.500202\n"
                   "hold_seconds_count{route=\"/\"} 4\n"
                   "# HELP cpu_seconds_total CPU.\n"
                   "# TYPE cpu_seconds_total counter\n"
                   "cpu_seconds_total 1.5\n"
                   "# HELP files Files.\n"
                   "# TYPE files gauge\n"
                   "files 12\n");
    metrics_free(m);
    metrics_free(NULL);
}

static void a_value_on_a_bound_counts_within_it(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    struct histogram *seconds =
        metrics_histogram(m, "seconds", NULL, "S.", 1e-6, histogram_seconds, histogram_seconds_len);
    struct histogram *sizes =
        metrics_histogram(m, "sizes", NULL, "S.", 1, histogram_sizes, histogram_sizes_len);
    for (int i = 0; i < histogram_seconds_len; i++)
        histogram_observe(seconds, (uint64_t)(histogram_seconds[i] * 1e6 + 0.5));
    for (int i = 0; i < histogram_seconds_len; i++)
        assert_int_equal(histogram_bucket(seconds, i), 1);
    for (uint64_t n = 1; n <= 8192; n *= 2)
        histogram_observe(sizes, n);
    histogram_observe(sizes, UINT64_MAX);
    for (int i = 0; i <= histogram_sizes_len; i++)
        assert_int_equal(histogram_bucket(sizes, i), 1);
    metrics_free(m);
}

static void register_apart(void)
{
    struct metrics *m = metrics_new();
    metrics_counter(m, "a", "x=\"1\"", "A.");
    metrics_counter(m, "b", NULL, "B.");
    metrics_counter(m, "a", "x=\"2\"", "A.");
}

static void one_name_registered_in_two_places_is_our_mistake(void **state)
{
    (void)state;
    assert_true(WIFSIGNALED(status_of_child(register_apart)));
}

#define ADDS 20000

static void *add_many(void *argument)
{
    struct histogram *h = argument;
    for (uint64_t i = 0; i < ADDS; i++)
        histogram_observe(h, i % 3);
    return NULL;
}

static void no_observation_is_lost_between_threads(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    struct histogram *h =
        metrics_histogram(m, "h", NULL, "H.", 1, histogram_sizes, histogram_sizes_len);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, h), 0);
    struct buf b = {0};
    metrics_render(m, &b);
    buf_close(&b);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    metrics_render(m, &b);
    buf_char(&b, '\0');
    assert_non_null(strstr(b.data, "h_count 80000\n"));
    buf_close(&b);
    metrics_free(m);
}

/* ---- gzip ---- */

static void unpacked(const struct buf *packed, bool whole, const char *expected, size_t len)
{
    static char out[65536];
    z_stream z = {0};
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_in = (Bytef *)packed->data;
    z.avail_in = (uInt)packed->len;
    z.next_out = (Bytef *)out;
    z.avail_out = sizeof out;
    assert_int_equal(inflate(&z, Z_SYNC_FLUSH), whole ? Z_STREAM_END : Z_OK);
    assert_int_equal(z.avail_in, 0);
    assert_int_equal(z.total_out, len);
    assert_memory_equal(out, expected, len);
    inflateEnd(&z);
}

static void blocks_of_a_gzip_stream_follow_each_other_in_any_order(void **state)
{
    (void)state;
    struct buf a = {0}, b = {0}, packed_a = {0}, packed_b = {0};
    /* The texts are so similar that a single deflate stream would encode one by the other. */
    for (int i = 0; i < 500; i++) {
        buf_printf(&a, "[\"Stalls-A-%d\",\"h\"],", i);
        buf_printf(&b, "[\"Stalls-A-%d\",\"b\"],", i);
    }
    gzip_block(&a, &packed_a);
    gzip_block(&b, &packed_b);
    assert_true(packed_a.len < a.len / 3);
    const struct buf *orders[][3] = {{&packed_a, &packed_b, &packed_b},
                                     {&packed_b, &packed_a, &packed_a}};
    const struct buf *plain[][3] = {{&a, &b, &b}, {&b, &a, &a}};
    for (int order = 0; order < 2; order++) {
        struct buf stream = {0}, expected = {0};
        gzip_begin(&stream);
        gzip_block_stored(":\n\n", 3, &stream);
        buf_lit(&expected, ":\n\n");
        for (int i = 0; i < 3; i++) {
            buf_put(&stream, orders[order][i]->data, orders[order][i]->len);
            buf_put(&expected, plain[order][i]->data, plain[order][i]->len);
        }
        unpacked(&stream, false, expected.data, expected.len);
        buf_close(&stream);
        buf_close(&expected);
    }
    struct buf whole = {0};
    gzip_pack(&a, &whole);
    unpacked(&whole, true, a.data, a.len);
    buf_close(&whole);
    buf_close(&packed_a);
    buf_close(&packed_b);
    buf_close(&a);
    buf_close(&b);
}

static void percent_encoding_leaves_only_unreserved_characters(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_percent(&b, "aZ09-._~ /?&=%+@\xc3\xa9\n");
    buf_char(&b, '\0');
    assert_string_equal(b.data, "aZ09-._~%20%2F%3F%26%3D%25%2B%40%C3%A9%0A");
    buf_close(&b);
}

static void assert_hmac(const char *key, size_t key_len, const char *first, const char *second,
                        const char *expected)
{
    uint8_t code[DIGEST_SIZE];
    char text[2 * DIGEST_SIZE + 1];
    struct iovec parts[] = {digest_part(first, strlen(first)), digest_part(second, strlen(second))};
    digest_hmac(key, key_len, parts, 2, code);
    hex_format(code, sizeof code, text);
    assert_string_equal(text, expected);
}

/* The values are those of RFC 4231, cases 2 and 6, and the code of an empty text. */
static void hmac_is_that_of_the_standard(void **state)
{
    (void)state;
    char long_key[131];
    memset(long_key, 0xaa, sizeof long_key);
    assert_hmac("Jefe", 4, "what do ya want ", "for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    assert_hmac(long_key, sizeof long_key, "Test Using Larger Than Block-Size Key - ",
                "Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    assert_hmac(NULL, 0, "", "",
                "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static void a_pause_doubles_up_to_its_limit(void **state)
{
    (void)state;
    static const int64_t pauses[] = {20, 40, 80, 160, 200, 200};
    for (unsigned n = 0; n < sizeof pauses / sizeof *pauses; n++)
        assert_int_equal(backoff_pause(20, 200, n), pauses[n]);
    assert_int_equal(backoff_pause(25, 200, 3), 200); /* exactly */
    assert_int_equal(backoff_pause(200, 100, 0), 100);
    for (unsigned n = 40; n < 200; n++)
        assert_int_equal(backoff_pause(20, 200, n), 200);
    assert_int_equal(backoff_pause(20, INT64_MAX, 58), INT64_C(20) << 58);
    assert_int_equal(backoff_pause(20, INT64_MAX, 59), INT64_MAX);
    assert_int_equal(backoff_pause(20, 200, UINT_MAX), 200);
}

/* ---- colours ---- */

static void colours_have_three_or_six_digits_and_nothing_else(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",    "#",    "#ff",    "#ffff",   "#fffffff", "red",
                                        "fff", "#ggg", "#12345", "# 12345", "#12345g"};
    struct color color = {1, 2, 3};
    char text[COLOR_TEXT_SIZE];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(color_parse(wrong[i], &color));
    assert_int_equal(color.green, 2);
    assert_true(color_parse("#1aF", &color));
    color_format(color, text);
    assert_string_equal(text, "#11aaff");
    assert_true(color_parse("#7A1f2b", &color));
    color_format(color, text);
    assert_string_equal(text, "#7a1f2b");
}

static void contrast_is_that_of_the_wcag(void **state)
{
    (void)state;
    const struct color gray = {0x76, 0x76, 0x76}, lighter = {0x77, 0x77, 0x77};
    assert_true(fabs(color_contrast(COLOR_BLACK, COLOR_WHITE) - 21) < 1e-9);
    assert_true(fabs(color_contrast(gray, gray) - 1) < 1e-9);
    assert_true(color_contrast(gray, COLOR_WHITE) >= COLOR_CONTRAST_AA);
    assert_true(color_contrast(COLOR_WHITE, lighter) < COLOR_CONTRAST_AA);
}

static void any_colour_has_an_ink_and_becomes_one_that_can_be_read(void **state)
{
    (void)state;
    const struct color dark[] = {{0x13, 0x13, 0x18}, {0x25, 0x25, 0x3d}};
    for (int i = 0; i < 16 * 16 * 16; i++) {
        const struct color color = {(uint8_t)(i % 16 * 17), (uint8_t)(i / 16 % 16 * 17),
                                    (uint8_t)(i / 256 * 17)};
        assert_true(color_contrast(color, color_ink(color)) >= 4.58);
        struct color made = color_adapt(color, COLOR_WHITE, dark, 2, COLOR_CONTRAST_AA);
        assert_true(color_contrast(made, dark[0]) >= COLOR_CONTRAST_AA);
        assert_true(color_contrast(made, dark[1]) >= COLOR_CONTRAST_AA);
        if (color_contrast(color, dark[1]) >= COLOR_CONTRAST_AA)
            assert_memory_equal(&made, &color, sizeof color);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_a_gzip_stream_follow_each_other_in_any_order),
        cmocka_unit_test(every_verdict_has_words_and_failures_keep_their_numbers),
        cmocka_unit_test(setting_an_error_fills_it_and_returns_its_code),
        cmocka_unit_test(a_long_error_message_is_cut_and_terminated),
        cmocka_unit_test(a_broken_assumption_aborts_in_every_build),
        cmocka_unit_test(an_allocation_of_nothing_is_not_null),
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
        cmocka_unit_test(running_out_of_memory_aborts),
#endif
        cmocka_unit_test(memory_is_zeroed_and_survives_growth),
        cmocka_unit_test(a_copied_string_ends_where_told),
        cmocka_unit_test(a_vector_grows_zeroed_and_keeps_its_memory_when_cleared),
        cmocka_unit_test(the_system_clocks_run_forwards),
        cmocka_unit_test(a_fake_clock_stands_still_until_told),
        cmocka_unit_test(a_pause_doubles_up_to_its_limit),
        cmocka_unit_test(stepping_a_fake_clock_moves_the_wall_alone),
        cmocka_unit_test(times_are_rfc_3339_with_milliseconds),
        cmocka_unit_test(times_that_do_not_fit_show_as_the_first_or_last_that_does),
        cmocka_unit_test(a_local_time_has_its_offset),
        cmocka_unit_test(every_day_until_2500_agrees_with_the_c_library),
        cmocka_unit_test(the_same_seed_gives_the_same_bytes),
        cmocka_unit_test(seed_zero_is_still_repeatable),
        cmocka_unit_test(system_randomness_does_not_repeat),
        cmocka_unit_test(bytes_handed_out_are_wiped_from_the_pool),
        cmocka_unit_test(random_below_stays_below_and_reaches_every_value),
        cmocka_unit_test(ids_have_one_text_from_the_smallest_to_the_largest),
        cmocka_unit_test(random_ids_come_back_as_they_were),
        cmocka_unit_test(id_with_a_flipped_character_is_unknown),
        cmocka_unit_test(text_that_no_id_has_is_refused),
        cmocka_unit_test(secrets_are_equal_only_when_every_byte_is),
        cmocka_unit_test(appends_follow_one_another_through_growth),
        cmocka_unit_test(reserved_room_is_not_moved_by_the_appends_it_was_for),
        cmocka_unit_test(integers_are_written_from_the_least_to_the_greatest),
        cmocka_unit_test(printf_grows_the_buffer_as_needed),
        cmocka_unit_test(json_strings_escape_what_json_forbids_and_nothing_else),
        cmocka_unit_test(json_escapes_every_byte_alike_at_every_place),
        cmocka_unit_test(a_json_string_of_escapes_only_fits),
        cmocka_unit_test(json_times_are_quoted),
        cmocka_unit_test(json_members_get_commas_between_them_and_nowhere_else),
        cmocka_unit_test(a_log_line_is_one_line_whatever_the_values),
        cmocka_unit_test(lines_below_the_level_are_not_written),
        cmocka_unit_test(log_levels_are_read_by_name),
        cmocka_unit_test(a_postgres_url_that_cannot_be_is_told_and_no_other),
        cmocka_unit_test(hosts_of_this_machine_are_told_from_others),
        cmocka_unit_test(metrics_are_rendered_as_prometheus_text),
        cmocka_unit_test(a_value_on_a_bound_counts_within_it),
        cmocka_unit_test(one_name_registered_in_two_places_is_our_mistake),
        cmocka_unit_test(no_observation_is_lost_between_threads),
        cmocka_unit_test(colours_have_three_or_six_digits_and_nothing_else),
        cmocka_unit_test(contrast_is_that_of_the_wcag),
        cmocka_unit_test(any_colour_has_an_ink_and_becomes_one_that_can_be_read),
        cmocka_unit_test(percent_encoding_leaves_only_unreserved_characters),
        cmocka_unit_test(hmac_is_that_of_the_standard),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
