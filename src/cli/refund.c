/* `holdfast refund` and `holdfast notification`: what is owed to buyers and to the shop, and what
 * was done.  Main thread. */
#include "cli/resource.h"

static const struct param list_params[] = {{"status", PARAM_TEXT, "status", false, false}, {0}};

int cli_refund(int argc, char **argv)
{
    static const char usage[] =
        "usage: holdfast refund list [--status STATUS] [--limit N]\n"
        "  --status STATUS        only those that are owed, pending, succeeded or failed\n"
        "  --limit N              at most N\n" REMOTE_OPTIONS_HELP REMOTE_EXIT_HELP;
    static const char *const columns[] = {"number",   "status",     "amount",     "currency",
                                          "attempts", "created_at", "last_error", NULL};
    static const struct verb verbs[] = {{.name = "list",
                                         .method = "GET",
                                         .path = "/v1/refunds",
                                         .params = list_params,
                                         .columns = columns,
                                         .page_max = 100},
                                        {0}};
    static const struct resource refund = {.name = "refund", .usage = usage, .verbs = verbs};
    return resource_main(&refund, argc, argv);
}

int cli_notification(int argc, char **argv)
{
    static const char usage[] =
        "usage: holdfast notification list [--status STATUS] [--limit N]\n"
        "  --status STATUS        only those that are pending, delivered or failed\n"
        "  --limit N              at most N\n" REMOTE_OPTIONS_HELP REMOTE_EXIT_HELP;
    static const char *const columns[] = {"id",         "type",       "status", "attempts",
                                          "created_at", "last_error", NULL};
    static const struct verb verbs[] = {{.name = "list",
                                         .method = "GET",
                                         .path = "/v1/notifications",
                                         .params = list_params,
                                         .columns = columns,
                                         .page_max = 100},
                                        {0}};
    static const struct resource notification = {
        .name = "notification", .usage = usage, .verbs = verbs};
    return resource_main(&notification, argc, argv);
}
