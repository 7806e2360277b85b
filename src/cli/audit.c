/* `holdfast audit`: the log of an event, or of a seat or hold of it.  Main thread. */
#include "cli/resource.h"

static const char usage[] =
    "usage: holdfast audit EVENT [--seat SEAT] [--hold HOLD] [--after SEQ] [--limit N] [--follow]\n"
    "Prints the log of an event, oldest first.\n"
    "  --seat SEAT            only what happened to this seat\n"
    "  --hold HOLD            only what happened to this hold\n"
    "  --after SEQ            only what came after this seq\n"
    "  --limit N              at most N rows\n"
    "  --follow               then wait for more, until it is interrupted\n" REMOTE_OPTIONS_HELP
        REMOTE_EXIT_HELP;

static const struct param params[] = {{"seat", PARAM_TEXT, "seat", false, false},
                                      {"hold", PARAM_TEXT, "hold", false, false},
                                      {"after", PARAM_INTEGER, "after", false, false},
                                      {0}};

static const char *const columns[] = {"seq",   "at",       "cause", "object", "seat",
                                      "area",  "quantity", "type",  "from",   "to",
                                      "fence", "until",    "actor", "hold",   NULL};

static const struct verb verbs[] = {
    {.method = "GET",
     .path = "/v1/audit",
     .operand = "EVENT",
     .operand_member = "event",
     .params = params,
     .columns = columns,
     .page_max = 1000},
};

int cli_audit(int argc, char **argv)
{
    static const struct resource audit = {.name = "audit", .usage = usage, .verbs = verbs};
    return resource_main(&audit, argc, argv);
}
