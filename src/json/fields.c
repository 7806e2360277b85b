/* See fields.h.  Duplicate fields, unknown fields, wrong types, bad UTF-8 and values out of range
 * are the client's mistakes, and the message names the field. */
#include "json/fields.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json_put.h"
#include "base/utf8.h"

#define METADATA_KEYS_MAX 50
#define METADATA_KEY_CHARS_MAX 40
#define METADATA_VALUE_CHARS_MAX 500

bool parse_digits(const char *text, size_t len, int64_t *ret)
{
    int64_t n = 0;
    if (len == 0 || len > 18)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        n = n * 10 + (text[i] - '0');
    }
    *ret = n;
    return true;
}

/* Reads `n` digits at *text, which moves past them.  Returns false if they are no digits, or out of
 * range. */
static bool take_digits(const char **text, size_t n, int min, int max, int *ret)
{
    int64_t value;
    if (strnlen(*text, n) < n || !parse_digits(*text, n, &value) || value < min || value > max)
        return false;
    *text += n;
    *ret = (int)value;
    return true;
}

static bool take_char(const char **text, const char *wanted, char *ret)
{
    if (!**text || !strchr(wanted, **text))
        return false;
    *ret = *(*text)++;
    return true;
}

bool parse_local_time(const char *text, int64_t *ret_ms, int64_t *ret_offset_min)
{
    struct tm tm = {0};
    char mark;
    int ms = 0, hours = 0, minutes = 0;
    if (!take_digits(&text, 4, 1970, 9999, &tm.tm_year) || !take_char(&text, "-", &mark) ||
        !take_digits(&text, 2, 1, 12, &tm.tm_mon) || !take_char(&text, "-", &mark) ||
        !take_digits(&text, 2, 1, 31, &tm.tm_mday) || !take_char(&text, "Tt ", &mark) ||
        !take_digits(&text, 2, 0, 23, &tm.tm_hour) || !take_char(&text, ":", &mark) ||
        !take_digits(&text, 2, 0, 59, &tm.tm_min) || !take_char(&text, ":", &mark) ||
        !take_digits(&text, 2, 0, 60, &tm.tm_sec))
        return false;
    if (take_char(&text, ".", &mark)) {
        size_t n = strspn(text, "0123456789");
        if (n < 1 || n > 9)
            return false;
        for (size_t i = 0; i < 3; i++)
            ms = ms * 10 + (i < n ? text[i] - '0' : 0);
        text += n;
    }
    /* A plus sign in a query arrives as a space. */
    if (!take_char(&text, "Zz+- ", &mark))
        return false;
    if (mark != 'Z' && mark != 'z' &&
        (!take_digits(&text, 2, 0, 23, &hours) || !take_char(&text, ":", &(char){0}) ||
         !take_digits(&text, 2, 0, 59, &minutes)))
        return false;
    int day = tm.tm_mday;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    int64_t seconds = timegm(&tm);
    if (*text || tm.tm_mday != day) /* timegm turns the 31st of April into the 1st of May */
        return false;
    int64_t offset_min = (int64_t)hours * 60 + minutes;
    *ret_offset_min = mark == '-' ? -offset_min : offset_min;
    *ret_ms = (seconds - *ret_offset_min * 60) * 1000 + ms;
    return true;
}

bool text_is_link(const char *text)
{
    static const char https[] = "https://";
    for (const char *at = text; *at; at++)
        if (*at <= ' ' || *at > '~' || strchr("\"<>\\^`{|}", *at))
            return false;
    if (strncmp(text, https, strlen(https)) != 0)
        return text[0] == '/' && text[1] != '/';
    const char *host = text + strlen(https);
    size_t len = strcspn(host, "/?#");
    return isalnum((unsigned char)*host) && !memchr(host, '@', len);
}

bool parse_time(const char *text, int64_t *ret_ms)
{
    int64_t offset_min;
    return parse_local_time(text, ret_ms, &offset_min);
}

bool field_fail(const struct fields *f, const char *name, const char *what)
{
    int path_len = (int)strlen(f->path);
    if (!*name && path_len > 0)
        path_len--; /* the object itself is meant: no dot after it */
    size_t len = strnlen(name, 60);
    while (len > 0 && ((unsigned char)name[len] & 0xc0) == 0x80)
        len--; /* so as not to end in the middle of a character */
    (void)hf_err_set(f->err, HF_INVALID_REQUEST, "%.*s%.*s %s", path_len, f->path, (int)len, name,
                     what);
    return false;
}

const char *json_fault(const json_error_t *error)
{
    switch (json_error_code(error)) {
    case json_error_invalid_utf8:
        return "is not valid UTF-8";
    case json_error_duplicate_key:
        return "has a field twice";
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return "has a NUL character in a string";
    case json_error_numeric_overflow:
        return "has a number that is too large";
    case json_error_stack_overflow:
        return "is nested too deeply";
    case json_error_premature_end_of_input:
        return "ends too early";
    default:
        return "is not valid JSON";
    }
}

/* The name of the field that is given twice, which jansson quotes in its message; else NULL. */
static const char *duplicate_name(const json_error_t *error, char out[64])
{
    const char *start = strstr(error->text, "near '\"");
    if (json_error_code(error) != json_error_duplicate_key || !start)
        return NULL;
    start += strlen("near '\"");
    size_t len = strcspn(start, "\"");
    if (len == 0 || len >= 64)
        return NULL;
    memcpy(out, start, len);
    out[len] = '\0';
    return out;
}

bool json_is_moderate(const char *text, size_t len, size_t max)
{
    size_t containers = 0, commas = 0, token = 0; /* where the string or number began */
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else {
            in_string = c == '"';
            containers += c == '{' || c == '[';
            commas += c == ',';
            if (strchr("\"{}[],: \t\r\n", c))
                token = i;
        }
        if (i - token > JSON_TOKEN_MAX)
            return false;
    }
    return containers <= max && commas / 4 <= max;
}

json_t *parse_body(const struct buf *body, bool empty_ok, struct hf_err *err)
{
    if (body->len == 0) {
        if (empty_ok)
            return json_object();
        (void)hf_err_set(err, HF_INVALID_REQUEST, "body is missing");
        return NULL;
    }
    json_error_t error;
    json_t *json = json_loadb(body->data, body->len, JSON_REJECT_DUPLICATES, &error);
    if (!json) {
        char name[64];
        if (duplicate_name(&error, name))
            (void)hf_err_set(err, HF_INVALID_REQUEST, "%s is given twice", name);
        else
            (void)hf_err_set(err, HF_INVALID_REQUEST, "body %s (line %d, column %d)",
                             json_fault(&error), error.line, error.column);
        return NULL;
    }
    if (!json_is_object(json)) {
        (void)hf_err_set(err, HF_INVALID_REQUEST, "body must be a JSON object");
        json_decref(json);
        return NULL;
    }
    return json;
}

bool fields_known(const struct fields *f, const char *const *known)
{
    json_t *object = (json_t *)(uintptr_t)f->object; /* jansson's iterators take no const */
    if (!json_is_object(object))
        return field_fail(f, "", "must be an object");
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
        const char *key = json_object_iter_key(it);
        const char *const *name = known;
        while (*name && strcmp(*name, key) != 0)
            name++;
        if (!*name)
            return field_fail(f, key, "is not a known field");
    }
    return true;
}

/* Finds a field.  *ret is NULL if it is absent and may be. */
static bool lookup(const struct fields *f, const char *name, enum need need, const json_t **ret)
{
    const json_t *value = json_object_get(f->object, name);
    if (!value && need == REQUIRED)
        return field_fail(f, name, "is required");
    if (need == NULLABLE && json_is_null(value))
        value = NULL;
    *ret = value;
    return true;
}

bool field_int(const struct fields *f, const char *name, enum need need, int64_t min, int64_t max,
               int64_t *ret)
{
    const json_t *value = NULL;
    if (!lookup(f, name, need, &value))
        return false;
    if (!value)
        return true;
    if (!json_is_integer(value))
        return field_fail(f, name, "must be an integer");
    int64_t n = json_integer_value(value);
    if (n < min || n > max) {
        if (max == INT64_MAX)
            (void)hf_err_set(f->err, HF_INVALID_REQUEST, "%.80s%.60s must be at least %" PRId64,
                             f->path, name, min);
        else
            (void)hf_err_set(f->err, HF_INVALID_REQUEST,
                             "%.80s%.60s must be from %" PRId64 " to %" PRId64, f->path, name, min,
                             max);
        return false;
    }
    *ret = n;
    return true;
}

bool field_number(const struct fields *f, const char *name, enum need need, double *ret)
{
    const json_t *value = NULL;
    if (!lookup(f, name, need, &value))
        return false;
    if (!value)
        return true;
    if (!json_is_number(value))
        return field_fail(f, name, "must be a number");
    *ret = json_number_value(value);
    return true;
}

bool field_bool(const struct fields *f, const char *name, enum need need, bool *ret)
{
    const json_t *value = NULL;
    if (!lookup(f, name, need, &value))
        return false;
    if (!value)
        return true;
    if (!json_is_boolean(value))
        return field_fail(f, name, "must be true or false");
    *ret = json_is_true(value);
    return true;
}

static bool read_text(const struct fields *f, const char *name, const json_t *value,
                      size_t chars_min, size_t chars_max, const char **ret, size_t *ret_len)
{
    if (!json_is_string(value))
        return field_fail(f, name, "must be a string");
    const char *text = json_string_value(value);
    size_t len = json_string_length(value);
    size_t chars = utf8_chars(text, len);
    if (chars < chars_min && chars_min == 1)
        return field_fail(f, name, "must not be empty");
    if (chars < chars_min) {
        (void)hf_err_set(f->err, HF_INVALID_REQUEST, "%.80s%.60s must have at least %zu characters",
                         f->path, name, chars_min);
        return false;
    }
    if (chars > chars_max) {
        (void)hf_err_set(f->err, HF_INVALID_REQUEST, "%.80s%.60s must have at most %zu characters",
                         f->path, name, chars_max);
        return false;
    }
    *ret = text;
    *ret_len = len;
    return true;
}

bool field_text(const struct fields *f, const char *name, enum need need, size_t chars_min,
                size_t chars_max, const char **ret, size_t *ret_len)
{
    const json_t *value = NULL;
    if (!lookup(f, name, need, &value))
        return false;
    return !value || read_text(f, name, value, chars_min, chars_max, ret, ret_len);
}

bool item_text(const struct fields *f, const char *name, const json_t *list, size_t index,
               size_t chars_max, const char **ret, size_t *ret_len)
{
    char item[64];
    (void)snprintf(item, sizeof item, "%.32s[%zu]", name, index);
    return read_text(f, item, json_array_get(list, index), 1, chars_max, ret, ret_len);
}

bool field_array(const struct fields *f, const char *name, enum need need, const json_t **ret)
{
    const json_t *value = NULL;
    if (!lookup(f, name, need, &value))
        return false;
    if (!value)
        return true;
    if (!json_is_array(value))
        return field_fail(f, name, "must be a list");
    *ret = value;
    return true;
}

static bool metadata_entry_ok(const struct fields *f, const char *key, const json_t *value)
{
    if (utf8_chars(key, strlen(key)) > METADATA_KEY_CHARS_MAX)
        return field_fail(f, key, "has more than 40 characters in its name");
    if (json_is_object(value) || json_is_array(value))
        return field_fail(f, key, "must be a string, a number, true, false or null");
    if (json_is_string(value) &&
        utf8_chars(json_string_value(value), json_string_length(value)) > METADATA_VALUE_CHARS_MAX)
        return field_fail(f, key, "must have at most 500 characters");
    return true;
}

void put_real(struct buf *out, double value)
{
    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    buf_str(out, text);
}

void put_scalar(struct buf *out, const json_t *value)
{
    if (json_is_string(value))
        buf_json(out, json_string_value(value), json_string_length(value));
    else if (json_is_integer(value))
        buf_int(out, json_integer_value(value));
    else if (json_is_real(value))
        put_real(out, json_real_value(value));
    else
        buf_str(out, json_is_true(value) ? "true" : json_is_false(value) ? "false" : "null");
}

static char *metadata_text(json_t *object)
{
    struct buf out = {0};
    buf_char(&out, '{');
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
        json_put_text(&out, NULL, json_object_iter_key(it));
        buf_char(&out, ':');
        put_scalar(&out, json_object_iter_value(it));
    }
    buf_put(&out, "}", 2); /* with the NUL */
    return out.data;
}

bool field_local_time(const struct fields *f, const char *name, int64_t *ret_ms,
                      int64_t *ret_offset_min)
{
    const char *text = NULL;
    size_t len;
    int64_t at = 0, offset_min = 0;
    if (!field_text(f, name, NULLABLE, 1, 64, &text, &len))
        return false;
    if (text && (!parse_local_time(text, &at, &offset_min) || at <= 0))
        return field_fail(f, name, "must be a time such as 2030-01-31T20:00:00.000Z");
    if (text) {
        *ret_ms = at;
        *ret_offset_min = offset_min;
    }
    return true;
}

bool field_time(const struct fields *f, const char *name, int64_t *ret_ms)
{
    int64_t offset_min;
    return field_local_time(f, name, ret_ms, &offset_min);
}

bool field_metadata(const struct fields *f, const char *name, char **ret)
{
    json_t *object = json_object_get(f->object, name);
    if (!object)
        return true;
    if (!json_is_object(object))
        return field_fail(f, name, "must be an object");
    if (json_object_size(object) > METADATA_KEYS_MAX)
        return field_fail(f, name, "must have at most 50 keys");
    const struct fields inner = {.object = object, .path = "metadata.", .err = f->err};
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it))
        if (!metadata_entry_ok(&inner, json_object_iter_key(it), json_object_iter_value(it)))
            return false;
    *ret = metadata_text(object);
    return true;
}
