/* `holdfast verify`: checks the invariants that the rows of the ledger, and the gate, can show. */
#ifndef HF_CLI_VERIFY_H
#define HF_CLI_VERIFY_H

/* argv[0] is "verify".  Returns the exit status: 0 if all is well, 1 if an invariant is violated,
 * 64 for wrong usage, 69 if the ledger or the gate cannot be read. */
int cli_verify(int argc, char **argv);

#endif
