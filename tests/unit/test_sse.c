/* Claims about net/sse.h: the same messages come out however the bytes are cut. */
#include "support/fixtures.h"

#include <string.h>

#include "net/sse.h"

static struct buf seen;
static bool goes_on;

static bool note(void *ctx, const char *event, const char *data)
{
    assert_ptr_equal(ctx, &seen);
    buf_printf(&seen, "[%s|%s]", event, data);
    return goes_on;
}

static void messages_do_not_depend_on_how_the_bytes_are_cut(void **state)
{
    (void)state;
    static const char text[] = ": a comment\n\nevent: first\nevent: seats\r\nid: 7\ndata: a\r\n"
                               "data:b\ndata\ndata: : c\n\r\nretry: 250\nid:\nnonsense: x\n\n"
                               "event: no data\n\nid: 0123456789012345678901234567890123456789\n"
                               "data:  two blanks\n\nretry: -5\nid: 9\ndata: never ended\n";
    for (size_t size = 1; size <= sizeof text; size++) {
        struct sse s = {.on_message = note, .ctx = &seen, .len_max = 100, .retry_ms = 1};
        goes_on = true;
        seen.len = 0;
        for (size_t from = 0; from < sizeof text - 1; from += size) {
            size_t left = sizeof text - 1 - from;
            assert_true(sse_take(&s, text + from, left < size ? left : size));
        }
        buf_char(&seen, '\0');
        assert_string_equal(seen.data, "[seats|a\nb\n\n: c][| two blanks]");
        assert_string_equal(s.last_id, "9");
        assert_int_equal(s.retry_ms, 0);
        seen.len = 0;
        sse_begin(&s);
        assert_true(sse_take(&s, "\ndata: new\n\n", 12));
        buf_char(&seen, '\0');
        assert_string_equal(seen.data, "[|new]");
        sse_close(&s);
    }
    buf_close(&seen);
}

static void reading_ends_when_told_or_when_a_message_is_too_long(void **state)
{
    (void)state;
    struct sse s = {.on_message = note, .ctx = &seen, .len_max = 20};
    goes_on = false;
    assert_false(sse_take(&s, "data: a\n\ndata: b\n\n", 18));
    buf_char(&seen, '\0');
    assert_string_equal(seen.data, "[|a]"); /* and not b */
    goes_on = true;
    sse_begin(&s);
    assert_false(sse_take(&s, "data: a line that is too long", 29));
    sse_begin(&s);
    for (int i = 0; i < 6; i++) /* also of many short lines */
        assert_true(sse_take(&s, "data: a\n", 8));
    assert_true(sse_take(&s, "data: ab\n", 9));
    assert_false(sse_take(&s, "data: a\n", 8));
    sse_close(&s);
    buf_close(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_do_not_depend_on_how_the_bytes_are_cut),
        cmocka_unit_test(reading_ends_when_told_or_when_a_message_is_too_long),
    };
    return cmocka_run_group_tests_name("sse", tests, NULL, NULL);
}
