/* See settings.h.  On the main thread, at start and at a reload; any thread may then call
 * settings_environment. */
#include "base/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/private_file.h"
#include "base/secret.h"
#include "base/variables.h"

static const char blanks[] = " \t\r";

/* Ends the text before its trailing blanks and returns its beginning after the leading ones. */
static char *trim(char *text)
{
    text += strspn(text, blanks);
    size_t len = strlen(text);
    while (len && strchr(blanks, text[len - 1]))
        len--;
    text[len] = '\0';
    return text;
}

static char *unquote(char *value)
{
    size_t len = strlen(value);
    if (len < 2 || (*value != '"' && *value != '\'') || value[len - 1] != *value)
        return value;
    value[len - 1] = '\0';
    return value + 1;
}

/* Adds what one line sets.  Returns what is wrong with the line, in words that are followed by the
 * known variable that may have been meant, if *ret_meant is set; NULL: nothing is wrong. */
static const char *add_line(struct settings *s, char *line, const char **ret_meant)
{
    line = trim(line);
    if (!*line || *line == '#')
        return NULL;
    char *equals = strchr(line, '=');
    if (!equals)
        return "it is not NAME=VALUE";
    *equals = '\0';
    char *name = trim(line);
    if (!variables_know(name, strlen(name))) {
        *ret_meant = variables_nearest(name, strlen(name));
        return "there is no such variable";
    }
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->list[i].name, name) == 0)
            return "this variable is set twice";
    if (s->n == SETTINGS_MAX)
        return "one setting too many";
    s->list[s->n].name = name;
    s->list[s->n++].value = unquote(trim(equals + 1));
    return NULL;
}

bool settings_read(const char *path, struct settings *ret, struct hf_err *err)
{
    struct settings s = {.text = secret_alloc(SETTINGS_FILE_MAX + 1)};
    size_t len;
    bool good = private_file_read(path, s.text, SETTINGS_FILE_MAX, &len, err);
    if (good && strlen(s.text) != len) {
        (void)hf_err_set(err, HF_INVALID_REQUEST, "%.150s: it is not text", path);
        good = false;
    }
    int n_line = 0;
    for (char *line = s.text, *next; good && line; line = next) {
        const char *meant = NULL;
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        n_line++;
        const char *fault = add_line(&s, line, &meant);
        if (fault)
            (void)hf_err_set(err, HF_INVALID_REQUEST, "%.120s, line %d: %s%s%s", path, n_line,
                             fault, meant ? "; did you mean " : "", meant ? meant : "");
        good = !fault;
    }
    if (good)
        *ret = s;
    else
        settings_close(&s);
    return good;
}

void settings_close(struct settings *s)
{
    secret_free(s->text, SETTINGS_FILE_MAX + 1);
    *s = (struct settings){0};
}

/* ---- the environment ---- */

static struct {
    char *text; /* NAME=VALUE as in environ, one after the other, ended by an empty one; NULL:
                   nothing was taken */
    size_t size;
} taken;

void settings_take_environment(void)
{
    size_t kept = 0;
    taken.size = 1;
    for (char **entry = environ; *entry; entry++)
        taken.size += strlen(*entry) + 1;
    char *to = taken.text = secret_alloc(taken.size);
    for (char **entry = environ; *entry; entry++) {
        size_t len = strcspn(*entry, "=");
        if (variables_is_secret(*entry, len)) {
            to = stpcpy(to, *entry) + 1;
            explicit_bzero(*entry + len, strlen(*entry + len));
        } else {
            environ[kept++] = *entry;
        }
    }
    environ[kept] = NULL;
}

void settings_wipe_environment(void)
{
    secret_free(taken.text, taken.size);
    taken.text = NULL;
}

const char *settings_environment(const char *name)
{
    size_t len = strlen(name);
    for (const char *entry = taken.text; entry && *entry; entry += strlen(entry) + 1)
        if (strncmp(entry, name, len) == 0 && entry[len] == '=')
            return entry + len + 1;
    return getenv(name);
}

/* ---- settings ---- */

const char *settings_get(const struct settings *s, const char *name)
{
    const char *value = settings_environment(name);
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->list[i].name, name) == 0)
            value = s->list[i].value;
    return value && *value ? value : NULL;
}
