/* JSON from a file that the command line names.  Main thread. */
#ifndef HF_CLI_JSON_FILE_H
#define HF_CLI_JSON_FILE_H

#include <jansson.h>

/* Reads one object from the file at `path`, or from standard input if it is "-"; for json_decref.
 * Returns NULL if that is not possible, after a message to stderr that begins with `what`.  Files
 * of more than 64 MiB, which no server accepts, are not read. */
json_t *json_file_read(const char *command, const char *what, const char *path);

#endif
