/* The command line tool's main: picks the command.  None is there yet. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION "0.1.0"
#define EXIT_USAGE 64

static const char usage[] = "usage: holdfast [--help | --version]\n";

int main(int argc, char **argv)
{
    const char *arg = argc > 1 ? argv[1] : NULL;
    if (arg && (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)) {
        fputs(usage, stdout);
        return EXIT_SUCCESS;
    }
    if (arg && strcmp(arg, "--version") == 0) {
        puts("holdfast " VERSION);
        return EXIT_SUCCESS;
    }
    if (arg)
        fprintf(stderr, "holdfast: unknown command %s\n", arg);
    fputs(usage, stderr);
    return EXIT_USAGE;
}
