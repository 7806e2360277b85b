/* A file that appears under its name when it is complete: until then it is NAME.partial, which only
 * its owner can read.  A process that is killed leaves NAME.partial behind, and the next one takes
 * its place.  Main thread. */
#ifndef HF_CLI_STAGED_H
#define HF_CLI_STAGED_H

#include <stdbool.h>
#include <stdint.h>

struct staged {
    const char *command; /* for messages */
    char *path, *work;   /* the name, and NAME.partial; owned */
    int fd;
};

/* Creates the empty file path.partial.  Returns false, with a message, if that is not possible, or
 * if another process is at work on it. */
bool staged_begin(struct staged *s, const char *command, const char *path);
/* Returns false, with a message, unless the disk has room for so many bytes and a tenth more. */
bool staged_has_room(const struct staged *s, int64_t bytes);
/* Syncs the file.  Returns false, with a message, if that fails. */
bool staged_sync(const struct staged *s);
/* Gives the file its name, durably.  Returns false, with a message, if that fails. */
bool staged_commit(struct staged *s);
/* Removes what SQLite may have left beside the file. */
void staged_tidy(const struct staged *s);
/* Removes the file, unless it has its name, and all that belongs to it; accepts a zeroed struct. */
void staged_close(struct staged *s);

#endif
