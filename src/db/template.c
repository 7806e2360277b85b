/* See template.h.  One pass finds the parameters, a second one writes the text.  Pure. */
#include "db/template.h"

#include <ctype.h>
#include <string.h>

struct params {
    int n;
    bool rows;
    bool locks; /* the statement locks rows */
    struct {
        const char *name;
        size_t len;
        enum db_type type;
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

static bool word_is(const char *s, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(s, word, len) == 0;
}

static enum db_type type_of(const char *word, size_t len)
{
    return word_is(word, len, "bigint")  ? DB_INT
           : word_is(word, len, "text")  ? DB_TEXT
           : word_is(word, len, "bytes") ? DB_BYTES
                                         : DB_NULL;
}

/* Parses "name type, name type)"; `list` points behind the opening parenthesis. */
static bool params_parse(const char *list, struct params *params)
{
    while (*list && *list != ')') {
        list += strspn(list, " ,\n");
        size_t len = word_len(list);
        if (!len || params->n == TEMPLATE_PARAMS_MAX)
            return false;
        params->v[params->n].name = list;
        params->v[params->n].len = len;
        list += len;
        list += strspn(list, " ");
        len = word_len(list);
        params->v[params->n].type = type_of(list, len);
        if (params->v[params->n++].type == DB_NULL)
            return false;
        list += len;
        list += strspn(list, " ");
    }
    return *list == ')';
}

/* Returns true if the text between the brace and the parenthesis ends in this word. */
static bool ends_in(const char *open, const char *paren, const char *word)
{
    size_t len = strlen(word);
    return (size_t)(paren - open) > len && memcmp(paren - len, word, len) == 0 &&
           !word_char(paren[-1 - (ptrdiff_t)len]);
}

static const char *fragment_text(const struct dialect *dialect, const char *name, size_t len)
{
    for (const struct template_fragment *f = dialect->fragments; f->name; f++)
        if (word_is(name, len, f->name))
            return f->text;
    return NULL;
}

static bool params_find(const char *sql, const struct dialect *dialect, struct params *params)
{
    for (const char *open = strchr(sql, '{'); open; open = strchr(open + 1, '{')) {
        const char *close = strchr(open, '}'), *paren = strchr(open, '(');
        if (!close)
            return false;
        if (!paren || paren > close || fragment_text(dialect, open + 1, (size_t)(paren - open) - 1))
            continue;
        if (params->n || !params_parse(paren + 1, params))
            return false;
        params->rows = ends_in(open, paren, "rows") || ends_in(open, paren, "values");
        if (!params->rows && !ends_in(open, paren, "args"))
            return false;
    }
    return true;
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

static void put_param(struct buf *out, const struct params *params, int number)
{
    static const char *const types[] = {
        [DB_NULL] = "", [DB_INT] = "bigint", [DB_TEXT] = "text", [DB_BYTES] = "bytea"};
    buf_char(out, '$');
    buf_int(out, number);
    buf_str(out, "::");
    buf_str(out, types[params->v[number - 1].type]);
}

static void put_name(struct buf *out, const struct params *params, int i)
{
    buf_put(out, params->v[i].name, params->v[i].len);
}

static void put_names(struct buf *out, const struct params *params)
{
    for (int i = 0; i < params->n; i++) {
        buf_str(out, i ? ", " : "");
        put_name(out, params, i);
    }
}

/* The arrays as columns of a SELECT, which PostgreSQL expands row by row.  As a function in FROM,
 * it would first copy each array into a store of its own: a third of the time of a small
 * statement. */
static void put_select(struct buf *out, const struct params *params, bool named)
{
    buf_str(out, "SELECT ");
    for (int i = 0; i < params->n; i++) {
        buf_str(out, i ? ", unnest(" : "unnest(");
        put_param(out, params, i + 1);
        buf_str(out, "[])");
        if (named) {
            buf_str(out, " AS ");
            put_name(out, params, i);
        }
    }
}

/* What a statement that locks has instead: PostgreSQL locks no row of such a SELECT, and refuses to
 * try. */
static void put_function(struct buf *out, const struct params *params)
{
    buf_str(out, "unnest(");
    for (int i = 1; i <= params->n; i++) {
        buf_str(out, i > 1 ? ", " : "");
        put_param(out, params, i);
        buf_str(out, "[]");
    }
    buf_str(out, ") AS r(");
    put_names(out, params);
    buf_char(out, ')');
}

/* Writes {values(...)}, { FROM rows(...)} or {args(...)}; `open` is the brace, `paren` the
 * parenthesis. */
static void put_list(struct buf *out, const struct dialect *dialect, const struct params *params,
                     const char *open, const char *paren)
{
    bool values = ends_in(open, paren, "values");
    if (values) {
        buf_char(out, '(');
        put_names(out, params);
        buf_str(out, ") ");
    }
    if (dialect->row_at_a_time) {
        if (values)
            put_values(out, params->n);
        return;
    }
    if (!params->rows)
        return;
    if (values) {
        put_select(out, params, false);
        return;
    }
    buf_put(out, open + 1, (size_t)(paren - open) - 1 - strlen("rows"));
    if (params->locks) {
        put_function(out, params);
        return;
    }
    buf_char(out, '(');
    put_select(out, params, true);
    buf_str(out, ") AS r");
}

/* Writes a fragment; its `%` stands for the argument between the parenthesis and the brace. */
static void put_fragment(struct buf *out, const char *text, const char *paren, const char *close)
{
    const char *mark = paren ? strchr(text, '%') : NULL;
    buf_put(out, text, mark ? (size_t)(mark - text) : strlen(text));
    if (!mark)
        return;
    buf_put(out, paren + 1, (size_t)(close - paren) - 2);
    buf_str(out, mark + 1);
}

/* Writes the reference r.x at `s`. */
static void put_reference(struct buf *out, const struct dialect *dialect,
                          const struct params *params, const char *s, int number)
{
    if (dialect->row_at_a_time) {
        buf_char(out, '?');
        buf_int(out, number);
    } else if (params->rows) {
        buf_put(out, s, 2 + word_len(s + 2));
    } else {
        put_param(out, params, number);
    }
}

static void params_copy(const struct params *params, bool slow, struct template_params *ret)
{
    *ret = (struct template_params){.n = params->n, .rows = params->rows, .slow = slow};
    for (int i = 0; i < params->n; i++)
        ret->types[i] = params->v[i].type;
}

enum hf_status template_expand(const char *sql, const struct dialect *dialect, struct buf *out,
                               struct template_params *ret_params, struct hf_err *err)
{
    struct params params = {.locks = strstr(sql, "{lock") || strstr(sql, "{share")};
    bool slow = false;
    if (!params_find(sql, dialect, &params))
        return hf_err_set(err, HF_INTERNAL, "bad statement template: %.120s", sql);
    char before = ' ';
    for (const char *s = sql; *s; before = *s++) {
        if (*s == '{') {
            const char *close = strchr(s, '}'), *paren = memchr(s, '(', (size_t)(close - s));
            size_t len = (size_t)((paren ? paren : close) - s - 1);
            const char *text = fragment_text(dialect, s + 1, len);
            if (text)
                put_fragment(out, text, paren, close);
            else if (paren)
                put_list(out, dialect, &params, s, paren);
            else if (word_is(s + 1, len, "slow"))
                slow = true;
            else
                return hf_err_set(err, HF_INTERNAL, "unknown fragment in: %.120s", sql);
            s = close;
        } else if (s[0] == 'r' && s[1] == '.' && !word_char(before) && before != '.') {
            int number = param_number(&params, s + 2);
            if (!number)
                return hf_err_set(err, HF_INTERNAL, "unknown parameter in: %.120s", s);
            put_reference(out, dialect, &params, s, number);
            s += 1 + word_len(s + 2);
        } else {
            buf_char(out, *s);
        }
    }
    params_copy(&params, slow, ret_params);
    return HF_OK;
}
