/* `holdfast verify`: is everything in the ledger as the invariants say? */
#ifndef HF_CLI_VERIFY_H
#define HF_CLI_VERIFY_H

/* argv[0] is "verify".  The exit status: 0 fine, 1 violated, 64 usage, 69 cannot be read. */
int cli_verify(int argc, char **argv);

#endif
