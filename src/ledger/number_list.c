/* See number_list.h. */
#include "ledger/number_list.h"

#include <stdlib.h>

void number_list_write(const uint32_t *numbers, uint32_t n, struct buf *out)
{
    buf_char(out, '[');
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            buf_char(out, ',');
        buf_int(out, numbers[i]);
    }
    buf_char(out, ']');
}

bool number_list_parse(const char *text, size_t len, uint32_t *numbers, uint32_t *ret_n)
{
    uint32_t n = 0;
    size_t i = 1;
    if (len < 2 || text[0] != '[' || text[len - 1] != ']')
        return false;
    while (i < len - 1) {
        uint64_t value = 0;
        size_t start = i;
        for (; text[i] >= '0' && text[i] <= '9' && value < EVENT_SEATS_MAX; i++)
            value = value * 10 + (uint64_t)(text[i] - '0');
        bool last = i == len - 1;
        if (i == start || value >= EVENT_SEATS_MAX || (text[start] == '0' && i > start + 1) ||
            (!last && (text[i] != ',' || i + 1 == len - 1)))
            return false;
        numbers[n++] = (uint32_t)value;
        i++;
    }
    *ret_n = n;
    return true;
}

void price_list_write(const struct price_run *runs, uint32_t n, struct buf *out)
{
    buf_char(out, '[');
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            buf_char(out, ',');
        buf_int(out, runs[i].price);
        buf_char(out, ',');
        if (runs[i].type)
            buf_char(out, '[');
        buf_int(out, runs[i].n);
        if (!runs[i].type)
            continue;
        buf_char(out, ',');
        buf_int(out, runs[i].type);
        buf_char(out, ']');
    }
    buf_char(out, ']');
}

/* Reads digits without a leading zero, up to `max`. */
static bool read_digits(const char **at, const char *end, int64_t max, int64_t *ret)
{
    const char *start = *at;
    int64_t value = 0;
    for (; *at < end && **at >= '0' && **at <= '9' && value <= max / 10; ++*at)
        value = value * 10 + (**at - '0');
    *ret = value;
    return *at > start && value <= max && (*start != '0' || *at == start + 1);
}

static bool read_char(const char **at, const char *end, char wanted)
{
    bool is_there = *at < end && **at == wanted;
    *at += is_there;
    return is_there;
}

/* Reads the places of a run, or its places and its type; the first type is not written. */
static bool read_places(const char **at, const char *end, struct price_run *ret)
{
    bool is_typed = read_char(at, end, '[');
    int64_t places, type = 0;
    if (!read_digits(at, end, UINT32_MAX, &places))
        return false;
    if (is_typed && (!read_char(at, end, ',') || !read_digits(at, end, TYPES_MAX - 1, &type) ||
                     !type || !read_char(at, end, ']')))
        return false;
    ret->n = (uint32_t)places;
    ret->type = (uint32_t)type;
    return true;
}

bool price_list_parse(const char *text, size_t len, struct price_run *runs, uint32_t *ret_n)
{
    const char *at = text + 1, *end = text + len - 1;
    uint32_t n = 0;
    if (len < 2 || text[0] != '[' || *end != ']')
        return false;
    while (at < end) {
        struct price_run run;
        if ((n && !read_char(&at, end, ',')) ||
            !read_digits(&at, end, INT64_MAX / 10, &run.price) || !read_char(&at, end, ',') ||
            !read_places(&at, end, &run))
            return false;
        runs[n++] = run;
    }
    *ret_n = n;
    return true;
}

void block_list_write(const struct area_blocks *blocks, struct buf *out)
{
    buf_char(out, '[');
    for (size_t i = 0; i < blocks->list.n; i++) {
        if (i)
            buf_char(out, ',');
        buf_int(out, blocks->list.v[i].channel);
        buf_char(out, ',');
        buf_int(out, blocks->list.v[i].places);
    }
    buf_char(out, ']');
}

bool block_list_parse(const char *text, size_t len, struct area_blocks *ret)
{
    uint32_t n = 0;
    struct price_run *pairs = hf_alloc((len + 1) / 4 * sizeof *pairs + 1);
    bool is_sound = price_list_parse(text, len, pairs, &n);
    for (uint32_t i = 0; is_sound && i < n; i++) {
        is_sound = pairs[i].price <= CHANNELS_MAX && !pairs[i].type;
        *vec_push(&ret->list) =
            (struct area_block){.channel = (uint32_t)pairs[i].price, .places = pairs[i].n};
    }
    free(pairs);
    return is_sound;
}

void wish_list_write(const struct wait_wish *wish, struct buf *out)
{
    uint32_t numbers[WISH_NUMBERS + TYPES_MAX] = {(uint32_t)(wish->section + 1),
                                                  (uint32_t)(wish->tier + 1),
                                                  (uint32_t)(wish->area + 1),
                                                  wish->quantity,
                                                  wish->category,
                                                  wish->accessible,
                                                  wish->adjacent};
    uint32_t n = WISH_NUMBERS;
    for (uint32_t type = 0; type < TYPES_MAX; type++) {
        numbers[WISH_NUMBERS + type] = wish->types[type];
        if (wish->types[type])
            n = WISH_NUMBERS + type + 1;
    }
    number_list_write(numbers, n, out);
}

bool wish_list_parse(const char *text, size_t len, struct wait_wish *ret)
{
    uint32_t numbers[WISH_LIST_MAX], n = 0;
    uint64_t of_types = 0;
    if (len > WISH_LIST_MAX || !number_list_parse(text, len, numbers, &n) || n < WISH_NUMBERS ||
        n > WISH_NUMBERS + TYPES_MAX || !numbers[3] || numbers[5] > 1 || numbers[6] > 1)
        return false;
    struct wait_wish wish = {.section = (int32_t)numbers[0] - 1,
                             .tier = (int32_t)numbers[1] - 1,
                             .area = (int32_t)numbers[2] - 1,
                             .quantity = numbers[3],
                             .category = numbers[4],
                             .accessible = (uint16_t)numbers[5],
                             .adjacent = (uint16_t)numbers[6]};
    for (uint32_t i = WISH_NUMBERS; i < n; i++) {
        if (numbers[i] > UINT16_MAX)
            return false;
        wish.types[i - WISH_NUMBERS] = (uint16_t)numbers[i];
        of_types += numbers[i];
    }
    if (n > WISH_NUMBERS && (!numbers[n - 1] || of_types != wish.quantity))
        return false;
    *ret = wish;
    return true;
}
