/* See json_file.h. */
#include "cli/json_file.h"

#include <errno.h>
#include <string.h>

#include "cli/common.h"

#define LEN_MAX ((size_t)64 << 20) /* the server's own limits are not larger */

/* Reads all of the file.  Returns false if it is too large or a read fails. */
static bool read_all(FILE *file, struct buf *ret)
{
    size_t n;
    do {
        buf_reserve(ret, 65536);
        n = fread(ret->data + ret->len, 1, 65536, file);
        ret->len += n;
    } while (n > 0 && ret->len <= LEN_MAX);
    return n == 0 && !ferror(file);
}

json_t *json_file_read(const char *command, const char *what, const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    struct buf text = {0};
    json_error_t why = {0};
    if (!file) {
        const char *why_not = strerror(errno);
        if (strcmp(what, path) == 0)
            cli_say(command, "%.200s: %s", path, why_not);
        else
            cli_say(command, "%.200s: %.200s: %s", what, path, why_not);
        return NULL;
    }
    bool is_read = read_all(file, &text);
    if (file != stdin)
        (void)fclose(file);
    json_t *object = is_read ? json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &why) : NULL;
    buf_close(&text);
    if (json_is_object(object))
        return object;
    if (!is_read)
        cli_say(command, "%.200s: the file cannot be read, or is larger than 64 MiB", what);
    else if (object)
        cli_say(command, "%.200s: not a JSON object", what);
    else
        cli_say(command, "%.200s: not a JSON object: line %d: %s", what, why.line, why.text);
    json_decref(object);
    return NULL;
}
