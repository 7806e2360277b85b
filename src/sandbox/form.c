/* See form.h. */
#include "sandbox/form.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/hex.h"
#include "base/utf8.h"

#define INT_DIGITS_MAX 18

/* Brackets come in pairs, one after another, behind a name that is not empty: a[b][c]. */
static bool well_bracketed(const char *name)
{
    const char *p = name + strcspn(name, "[]");
    if (p == name)
        return false;
    while (*p == '[') {
        p += 1 + strcspn(p + 1, "[]");
        if (*p++ != ']')
            return false;
    }
    return *p == '\0';
}

static bool fail(struct hf_err *err, const char *what)
{
    (void)hf_err_set(err, HF_INVALID_REQUEST, "%s", what);
    return false;
}

/* Checks the texts that the last two strings of f->text are, and makes an entry of them. */
static bool add_entry(struct form *f, size_t name_at, size_t value_at, struct hf_err *err)
{
    const char *name = f->text.data + name_at, *value = f->text.data + value_at;
    size_t name_len = value_at - 1 - name_at, value_len = f->text.len - 1 - value_at;
    if (f->entries.n == FORM_ENTRIES_MAX)
        return fail(err, "The request has too many parameters.");
    if (name_len >= FORM_NAME_MAX)
        return fail(err, "The name of a parameter is too long.");
    if (strlen(name) != name_len || strlen(value) != value_len)
        return fail(err, "Parameters must not contain NUL.");
    if (!utf8_is_valid(name, name_len) || !utf8_is_valid(value, value_len))
        return fail(err, "Parameters must be UTF-8.");
    if (!well_bracketed(name))
        return fail(err, "The name of a parameter has brackets that do not match.");
    *vec_push(&f->entries) = (struct form_entry){(uint32_t)name_at, (uint32_t)value_at};
    return true;
}

bool form_add(struct form *f, const char *name, const char *value, struct hf_err *err)
{
    size_t name_at = f->text.len;
    buf_put(&f->text, name, strlen(name) + 1);
    size_t value_at = f->text.len;
    buf_put(&f->text, value, strlen(value) + 1);
    return add_entry(f, name_at, value_at, err);
}

/* Appends the decoded text and a NUL.  Returns false at an escape that is none. */
static bool decode(struct buf *out, const char *text, size_t len)
{
    buf_reserve(out, len + 1);
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '%') {
            int high = len - i > 2 ? hex_digit(text[i + 1]) : -1;
            int low = len - i > 2 ? hex_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+') {
            c = ' ';
        }
        buf_char(out, c);
    }
    buf_char(out, '\0');
    return true;
}

bool form_parse(struct form *f, const char *text, size_t len, struct hf_err *err)
{
    for (const char *p = text, *end = len ? text + len : text; p < end; p++) {
        const char *stop = memchr(p, '&', (size_t)(end - p));
        stop = stop ? stop : end;
        if (stop == p)
            continue;
        const char *equals = memchr(p, '=', (size_t)(stop - p));
        const char *name_end = equals ? equals : stop, *value = equals ? equals + 1 : stop;
        size_t name_at = f->text.len, value_at;
        if (!decode(&f->text, p, (size_t)(name_end - p)))
            return fail(err, "The name of a parameter has a broken escape.");
        value_at = f->text.len;
        if (!decode(&f->text, value, (size_t)(stop - value)))
            return fail(err, "The value of a parameter has a broken escape.");
        if (!add_entry(f, name_at, value_at, err))
            return false;
        p = stop;
    }
    return true;
}

void form_close(struct form *f)
{
    buf_close(&f->text);
    vec_close(&f->entries);
}

const char *form_name(const struct form *f, size_t i)
{
    return f->text.data + f->entries.v[i].name;
}

const char *form_value(const struct form *f, size_t i)
{
    return f->text.data + f->entries.v[i].value;
}

const char *form_get(const struct form *f, const char *name)
{
    for (size_t i = f->entries.n; i-- > 0;)
        if (strcmp(form_name(f, i), name) == 0)
            return form_value(f, i);
    return NULL;
}

bool form_matches(const char *pattern, const char *name)
{
    for (; *pattern; pattern++) {
        if (strncmp(pattern, "[*]", 3) == 0 && *name == '[') {
            name += strcspn(name, "]");
            pattern += 2;
        } else if (strncmp(pattern, "[]", 2) == 0 && *name == '[') {
            name += 1 + strspn(name + 1, "0123456789");
            pattern += 1;
        }
        if (*name++ != *pattern)
            return false;
    }
    return *name == '\0';
}

size_t form_find(const struct form *f, const char *pattern, size_t from)
{
    while (from < f->entries.n && !form_matches(pattern, form_name(f, from)))
        from++;
    return from;
}

const char *form_unknown(const struct form *f, const char *const *patterns)
{
    for (size_t i = 0; i < f->entries.n; i++) {
        const char *const *p = patterns;
        while (*p && !form_matches(*p, form_name(f, i)))
            p++;
        if (!*p)
            return form_name(f, i);
    }
    return NULL;
}

void form_key(const char *name, char *out)
{
    const char *key = name + strcspn(name, "[");
    key += *key == '[';
    size_t len = strcspn(key, "]");
    memcpy(out, key, len);
    out[len] = '\0';
}

bool form_parse_int(const char *text, int64_t *ret)
{
    size_t len = strlen(text);
    if (len < 1 || len > INT_DIGITS_MAX || strspn(text, "0123456789") < len ||
        (len > 1 && *text == '0'))
        return false;
    *ret = strtoll(text, NULL, 10);
    return true;
}

static void encode(struct buf *out, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (isalnum(*p) || strchr("-._~[]", *p)) {
            buf_char(out, (char)*p);
        } else {
            buf_char(out, '%');
            buf_char(out, digits[*p >> 4]);
            buf_char(out, digits[*p & 15]);
        }
    }
}

void form_encode(struct buf *out, const char *name, const char *value)
{
    if (out->len)
        buf_char(out, '&');
    encode(out, name);
    buf_char(out, '=');
    encode(out, value);
}

static int compare_entries(const void *a, const void *b, void *context)
{
    const struct form_entry *x = a, *y = b;
    const char *text = context;
    int order = strcmp(text + x->name, text + y->name);
    return order ? order : strcmp(text + x->value, text + y->value);
}

void form_digest(const struct form *f, const char *prefix, uint8_t ret[32])
{
    struct buf all = {0};
    struct form_entry sorted[FORM_ENTRIES_MAX];
    size_t n = f->entries.n;
    buf_put(&all, prefix, strlen(prefix) + 1);
    if (n) {
        memcpy(sorted, f->entries.v, n * sizeof *sorted);
        qsort_r(sorted, n, sizeof *sorted, compare_entries, f->text.data);
    }
    for (size_t i = 0; i < n; i++) {
        const char *name = f->text.data + sorted[i].name, *value = f->text.data + sorted[i].value;
        buf_put(&all, name, strlen(name) + 1);
        buf_put(&all, value, strlen(value) + 1);
    }
    digest((struct iovec[]){digest_part(all.data, all.len)}, 1, ret);
    buf_close(&all);
}
