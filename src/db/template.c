/* Statement templates: one pass to find the parameters, one to write the text.  Pure. */
#include "db/template.h"

#include <ctype.h>
#include <string.h>

struct params {
    int n;
    struct {
        const char *name;
        size_t len;
    } v[TEMPLATE_PARAMS_MAX];
};

static bool word_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

static size_t word_len(const char *s)
{
    size_t n = 0;
    while (word_char(s[n]))
        n++;
    return n;
}

/* `list` stands behind the opening parenthesis of "name type, name type)". */
static bool params_parse(const char *list, struct params *params)
{
    while (*list && *list != ')') {
        list += strspn(list, " ,\n");
        size_t len = word_len(list);
        if (!len || params->n == TEMPLATE_PARAMS_MAX)
            return false;
        params->v[params->n].name = list;
        params->v[params->n++].len = len;
        list += len;
        list += strspn(list, " ");
        list += word_len(list);
        list += strspn(list, " ");
    }
    return *list == ')';
}

static bool params_find(const char *sql, struct params *params)
{
    for (const char *open = strchr(sql, '{'); open; open = strchr(open + 1, '{')) {
        const char *close = strchr(open, '}'), *paren = strchr(open, '(');
        if (!close)
            return false;
        if (paren && paren < close && (params->n || !params_parse(paren + 1, params)))
            return false;
    }
    return true;
}

static const char *fragment_text(const struct dialect *dialect, const char *name, size_t len)
{
    for (const struct template_fragment *f = dialect->fragments; f->name; f++)
        if (strlen(f->name) == len && memcmp(f->name, name, len) == 0)
            return f->text;
    return NULL;
}

static int param_number(const struct params *params, const char *name)
{
    size_t len = word_len(name);
    for (int i = 0; i < params->n; i++)
        if (params->v[i].len == len && memcmp(params->v[i].name, name, len) == 0)
            return i + 1;
    return 0;
}

static void put_values(struct buf *out, int n)
{
    buf_str(out, "VALUES (");
    for (int i = 1; i <= n; i++) {
        buf_str(out, i > 1 ? ",?" : "?");
        buf_int(out, i);
    }
    buf_char(out, ')');
}

enum hf_status template_expand(const char *sql, const struct dialect *dialect, struct buf *out,
                               int *ret_params, struct hf_err *err)
{
    struct params params = {0};
    hf_check(dialect->row_at_a_time);
    if (!params_find(sql, &params))
        return hf_err_set(err, HF_INTERNAL, "bad statement template: %.120s", sql);
    char before = ' ';
    for (const char *s = sql; *s; before = *s++) {
        if (*s == '{') {
            const char *close = strchr(s, '}');
            if (strncmp(s, "{values(", 8) == 0) {
                put_values(out, params.n);
            } else if (!memchr(s, '(', (size_t)(close - s))) {
                const char *text = fragment_text(dialect, s + 1, (size_t)(close - s - 1));
                if (!text)
                    return hf_err_set(err, HF_INTERNAL, "unknown fragment in: %.120s", sql);
                buf_str(out, text);
            }
            s = close;
        } else if (s[0] == 'r' && s[1] == '.' && !word_char(before) && before != '.') {
            int number = param_number(&params, s + 2);
            if (!number)
                return hf_err_set(err, HF_INTERNAL, "unknown parameter in: %.120s", s);
            buf_char(out, '?');
            buf_int(out, number);
            s += 1 + word_len(s + 2);
        } else {
            buf_char(out, *s);
        }
    }
    *ret_params = params.n;
    return HF_OK;
}
