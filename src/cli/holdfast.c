/* The main function of the command line tool: calls the command, each of which has a file beside
 * this one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/variables.h"
#include "cli/common.h"
#include "cli/lab.h"
#include "cli/verify.h"

static const struct command {
    const char *name, *help;
    int (*main)(int argc, char **argv); /* argv[0] is the command's name */
} commands[] = {
    {"run", "run a command while holding a lock", cli_run},
    {"elect", "run a command on one of many machines", cli_elect},
    {"lock", "get, renew, release, list, show and break locks", cli_lock},
    {"drivers", "list the coordinators and what each can do", cli_drivers},
    {"doctor", "say what a lock on a coordinator is worth", cli_doctor},
    {"cell", "show the servers of the lock service, and hand over", cli_cell},
    {"fence", "refuse a holder that was replaced", cli_fence},
    {"event", "create, show, change and watch what is on sale", cli_event},
    {"plan", "check and draw a seating plan", cli_plan},
    {"hold", "hold, renew, change, sell and release seats", cli_hold},
    {"waitlist", "list, move and remove those who wait for places", cli_waitlist},
    {"booking", "make, find, refund and cancel sales", cli_booking},
    {"refund", "list what is owed to buyers, and what was given back", cli_refund},
    {"notification", "list what the shop was told", cli_notification},
    {"audit", "read the log of an event", cli_audit},
    {"verify", "check the ledger against the invariants", cli_verify},
    {"backup", "copy a ledger in use, and check the copy", cli_backup},
    {"restore", "make a ledger of a backup", cli_restore},
    {"sandbox", "simulate Stripe, for trying payments", cli_sandbox},
    {"lab", "compare ways of selling a seat", cli_lab},
};
#define N_COMMANDS (sizeof commands / sizeof *commands)

static void usage(FILE *out)
{
    fputs("usage: holdfast COMMAND [OPTION...], holdfast --version, holdfast help [COMMAND]\n",
          out);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].help);
    fputs("`holdfast COMMAND --help` says more.\n", out);
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; name && i < N_COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

static bool is_help(const char *arg)
{
    return strcmp(arg, "help") == 0 || strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

/* Warns of variables that are nearly those of Holdfast.  Any other variable may be of a script. */
static void warn_of_misspelt_variables(void)
{
    size_t at = 0, len;
    for (const char *entry; (entry = variables_next_unknown(environ, &at, &len));) {
        const char *nearest = variables_nearest(entry, len);
        if (nearest)
            fprintf(stderr, "holdfast: %.*s has no effect; did you mean %s?\n", (int)len, entry,
                    nearest);
    }
}

/* Options that may stand before the command, as in `holdfast --server URL event list`: those that
 * say where to, and how to print. */
static const struct cli_option early_options[] = {
    {"server", CLI_TEXT, .to = NULL}, {"key-file", CLI_TEXT, .to = NULL},
    {"cacert", CLI_TEXT, .to = NULL}, {"lock", CLI_TEXT, .to = NULL},
    {"ledger", CLI_TEXT, .to = NULL}, {"timeout", CLI_TEXT, .to = NULL},
    {"json", CLI_TRUE, .to = NULL},   {0}};

int main(int argc, char **argv)
{
    warn_of_misspelt_variables();
    cli_operand_first(argc, argv, early_options);
    const char *arg = argc > 1 ? argv[1] : NULL;
    const struct command *command = find(arg);
    if (command)
        return command->main(argc - 1, argv + 1);
    if (arg && is_help(arg) && argc == 2) {
        usage(stdout);
        return EXIT_SUCCESS;
    }
    if (arg && is_help(arg)) {
        command = find(argv[2]);
        if (command)
            return command->main(2, (char *[]){argv[2], "--help", NULL});
        arg = argv[2];
    }
    if (arg && strcmp(arg, "--version") == 0) {
        puts("holdfast " HF_VERSION_TEXT);
        return EXIT_SUCCESS;
    }
    if (!arg) {
        usage(stderr);
        return EX_USAGE;
    }
    const char *names[N_COMMANDS];
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i].name;
    const char *meant = nearest_word(arg, strlen(arg), names, N_COMMANDS, strlen(arg) / 2);
    fprintf(stderr, "holdfast: unknown command %.60s%s%s%s; see holdfast help\n", arg,
            meant ? " (did you mean " : "", meant ? meant : "", meant ? "?)" : "");
    return EX_USAGE;
}
