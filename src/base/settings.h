/* Settings of a program: the variables of a file, and behind them the environment, whose secrets
 * are moved into memory of our own.
 *
 * The file has lines NAME=VALUE, as systemd's EnvironmentFile= does, without its escapes and
 * continued lines.  Blank lines and lines beginning with # are skipped, blanks around name and
 * value too, and one pair of quotes around the value.  A name that Holdfast does not know is an
 * error, since the file is for Holdfast alone. */
#ifndef HF_BASE_SETTINGS_H
#define HF_BASE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define SETTINGS_MAX 64
#define SETTINGS_FILE_MAX 16384

/* Zeroed, it is the environment alone. */
struct settings {
    char *text; /* what the rest points into */
    struct {
        const char *name, *value;
    } list[SETTINGS_MAX];
    size_t n;
};

/* Reads a file that nobody else may read (private_file.h), since it may hold keys and passwords.
 * On failure *ret is untouched; messages name the line and never quote a value. */
HF_MUST_USE bool settings_read(const char *path, struct settings *ret, struct hf_err *err);
/* Wipes the text.  Accepts a zeroed struct. */
void settings_close(struct settings *s);

/* Moves the secrets among the variables of the environment (variables_is_secret) to where core
 * dumps and /proc/PID/environ do not show them and child processes do not inherit them.  Call it
 * once, before there are threads and before anybody keeps a pointer that getenv returned. */
void settings_take_environment(void);
/* Wipes and frees what was taken.  Nobody may use what settings_environment has returned of it. */
void settings_wipe_environment(void);
/* The value of a variable as the process got it; NULL if it is not set.  As getenv, but it also has
 * what was taken. */
const char *settings_environment(const char *name);

/* The value, of the file before that of the environment; NULL if it is not set or empty. */
const char *settings_get(const struct settings *s, const char *name);

#endif
