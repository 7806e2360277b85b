/* See text.h.  No state; any thread. */
#include "http/text.h"

#include <string.h>
#include <strings.h>

#include "base/hex.h"

size_t text_unescape(char *text)
{
    char *out = text;
    for (const char *in = text; *in; in++) {
        int high = *in == '%' ? hex_digit(in[1]) : -1;
        int low = high >= 0 ? hex_digit(in[2]) : -1;
        int byte = low >= 0 ? high * 16 + low : 0;
        if (byte != '\0' && byte != '/' && byte != '%') {
            *out++ = (char)byte;
            in += 2;
        } else {
            *out++ = *in;
        }
    }
    *out = '\0';
    return (size_t)(out - text);
}

size_t text_unescape_name(const char *text, size_t len, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        bool slash = len - i >= 3 && strncasecmp(text + i, "%2f", 3) == 0;
        bool percent = len - i >= 3 && strncmp(text + i, "%25", 3) == 0;
        out[n++] = slash ? '/' : percent ? '%' : text[i];
        i += slash || percent ? 2 : 0;
    }
    return n;
}

bool text_etag_listed(const char *list, const char *etag)
{
    size_t etag_len = strlen(etag);
    while (*list) {
        list += strspn(list, " \t,");
        if (*list == '*')
            return true;
        if (strncmp(list, "W/", 2) == 0)
            list += 2;
        size_t len = *list == '"' ? strcspn(list + 1, "\"") + 1 : strcspn(list, ",");
        if (*list == '"' && list[len] == '"')
            len++;
        if (len == etag_len && memcmp(list, etag, len) == 0)
            return true;
        list += len;
    }
    return false;
}
