/* See copies.h. */
#include "cli/copies.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "cli/common.h"

void copies_default_url(char **url)
{
    const char *set = getenv("HOLDFAST_LEDGER");
    if (!*url && set)
        *url = hf_strndup(set, strlen(set));
}

bool copies_take_file(const char *command, const char *url, int argc, char **argv,
                      const char **ret_file)
{
    if (!url)
        (void)cli_no_ledger(command);
    else if (optind + 1 != argc || !*argv[optind])
        (void)cli_misused(command, "expected one FILE");
    else
        *ret_file = argv[optind];
    return *ret_file != NULL;
}

bool copies_is_ledger(const char *url, const char *file)
{
    struct stat a, b;
    const char *path = ledger_file(url);
    return path && stat(path, &a) == 0 && stat(file, &b) == 0 && a.st_ino == b.st_ino &&
           a.st_dev == b.st_dev;
}

int copies_fail(const char *command, const struct hf_err *err)
{
    cli_say(command, "%s", err->msg);
    return err->code == HF_INVALID_REQUEST ? EX_USAGE : EX_UNAVAILABLE;
}

static char *url_of(const char *file)
{
    struct buf b = {0};
    buf_str(&b, "sqlite:");
    buf_str(&b, file);
    buf_char(&b, '\0');
    return b.data;
}

int copies_verify(const char *command, const char *file, struct verify_report *ret)
{
    struct hf_err err = {0};
    char *url = url_of(file);
    enum hf_status status = ledger_verify(url, &clock_system, ret, &err);
    free(url);
    if (status != HF_OK)
        return copies_fail(command, &err);
    for (size_t i = 0; i < VERIFY_GATE; i++)
        if (ret->checks[i].violations)
            cli_say(command, "%s is violated %lld times: %s: %s", ret->checks[i].invariant,
                    (long long)ret->checks[i].violations, ret->checks[i].what,
                    ret->checks[i].examples[0]);
    return ret->violations ? EXIT_FAILURE : EXIT_SUCCESS;
}

int copies_size(const char *command, const char *file, struct ledger_size *ret)
{
    struct hf_err err = {0};
    char *url = url_of(file);
    enum hf_status status = ledger_size_read(url, &clock_system, ret, &err);
    free(url);
    return status == HF_OK ? EXIT_SUCCESS : copies_fail(command, &err);
}
