/* See number_list.h. */
#include "ledger/number_list.h"

#include "model/rows.h"

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
