/* Where a message of HTTP/1.1 ends, for programs that read many of them from sockets of their own:
 * head, Content-Length, body.  Chunked bodies are not known here. */
#ifndef HF_BENCH_MESSAGE_H
#define HF_BENCH_MESSAGE_H

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Returns the value of Content-Length in a head of `len` bytes that ends with an empty line; 0 if
 * there is none. */
static inline size_t message_content_length(const char *head, size_t len)
{
    static const char name[] = "content-length:";
    const char *end = head + len;
    for (const char *line = head; (line = memchr(line, '\n', (size_t)(end - line)));) {
        line++;
        if ((size_t)(end - line) > sizeof name && strncasecmp(line, name, sizeof name - 1) == 0)
            return strtoul(line + sizeof name - 1, NULL, 10);
    }
    return 0;
}

/* Returns the length of the first message in `data`, or 0 if it is not complete.  Its body begins
 * at *ret_body. */
static inline size_t message_len(const char *data, size_t len, size_t *ret_body)
{
    const char *empty = memmem(data, len, "\r\n\r\n", 4);
    if (!empty)
        return 0;
    size_t head_len = (size_t)(empty + 4 - data);
    size_t body_len = message_content_length(data, head_len);
    if (body_len > len - head_len)
        return 0;
    *ret_body = head_len;
    return head_len + body_len;
}

#endif
