/* What `holdfast backup` and `holdfast restore` share.  Main thread. */
#ifndef HF_CLI_COPIES_H
#define HF_CLI_COPIES_H

#include <stdbool.h>

#include "ledger/backup.h"
#include "ledger/verify.h"

/* Sets *url, which is owned, to HOLDFAST_LEDGER, unless it is set already. */
void copies_default_url(char **url);
/* Takes the only operand.  Returns false, with a message, if there is none, or no URL either. */
bool copies_take_file(const char *command, const char *url, int argc, char **argv,
                      const char **ret_file);
/* Is the file the one that the URL names? */
bool copies_is_ledger(const char *url, const char *file);
/* Writes what went wrong to stderr, and returns the exit code. */
int copies_fail(const char *command, const struct hf_err *err);
/* Checks the SQLite file: EXIT_SUCCESS, EXIT_FAILURE after naming what is violated, or the code of
 * another failure. */
int copies_verify(const char *command, const char *file, struct verify_report *ret);
int copies_size(const char *command, const char *file, struct ledger_size *ret);

#endif
