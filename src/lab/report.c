/* See report.h: fills in src/lab/report.html.  The script of the page draws everything else from
 * the JSON. */
#include "lab/report.h"

#include <stdbool.h>
#include <string.h>

#include "base/status.h"
#include "lab/assets.h"

/* Escapes "<", because a browser ends a script at "</script" even within a string. */
static void put_json(struct buf *out, const char *json)
{
    for (const char *c = json; *c; c++) {
        if (*c == '<')
            buf_lit(out, "\\u003c");
        else
            buf_char(out, *c);
    }
}

void report_page(const char *race, const char *anomalies, const char *locks, struct buf *out)
{
    const struct {
        const char *mark, *text;
        bool is_json;
    } parts[] = {
        {"{{style}}", asset_report_css, false}, {"{{race}}", race, true},
        {"{{anomalies}}", anomalies, true},     {"{{locks}}", locks ? locks : "null", true},
        {"{{chart}}", asset_chart_js, false},   {"{{script}}", asset_report_js, false}};
    const char *rest = asset_report_html;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) { /* in the order of the page */
        const char *mark = strstr(rest, parts[i].mark);
        hf_check(mark);
        buf_put(out, rest, (size_t)(mark - rest));
        (parts[i].is_json ? put_json : buf_str)(out, parts[i].text);
        rest = mark + strlen(parts[i].mark);
    }
    buf_str(out, rest);
}
