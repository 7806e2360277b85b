/* `holdfast lab`: calls the command.  Main thread. */
#include "cli/lab.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"

static const struct command {
    const char *name, *help; /* without help: for the lab itself, and not listed */
    int (*main)(int argc, char **argv);
} commands[] = {
    {"race", "sell the same seats by every strategy and compare", cli_lab_race},
    {"anomalies", "show race conditions step by step, and their cures", cli_lab_anomalies},
    {"locks", "measure every lock driver, and break it", cli_lab_locks},
    {"report", "all of it as one HTML page", cli_lab_report},
    {"lock-client", NULL, cli_lab_lock_client},
};
#define N_COMMANDS (sizeof commands / sizeof *commands)

static volatile sig_atomic_t caught;

static void on_signal(int signo) { caught = signo; }

const volatile sig_atomic_t *lab_catch_signals(void)
{
    const struct sigaction action = {.sa_handler = on_signal,
                                     .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    return &caught;
}

/* Prints the overview and the help of each command. */
static void help(void)
{
    fputs("usage: holdfast lab COMMAND [OPTION...]\n", stdout);
    for (size_t i = 0; i < N_COMMANDS && commands[i].help; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].help);
    fputs("`holdfast lab COMMAND --help` says more.\n", stdout);
    for (size_t i = 0; i < N_COMMANDS && commands[i].help; i++) {
        putchar('\n');
        optind = 0;
        (void)commands[i].main(2, (char *[]){(char *)commands[i].name, "--help", NULL});
    }
}

int cli_lab(int argc, char **argv)
{
    const char *arg = argc > 1 ? argv[1] : NULL;
    for (size_t i = 0; arg && i < N_COMMANDS; i++)
        if (strcmp(arg, commands[i].name) == 0)
            return commands[i].main(argc - 1, argv + 1);
    if (arg && (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)) {
        help();
        return EXIT_SUCCESS;
    }
    const char *names[N_COMMANDS];
    size_t n = 0;
    for (; n < N_COMMANDS && commands[n].help; n++)
        names[n] = commands[n].name;
    return cli_unknown("lab", "command", arg, names, n);
}
