/* Files that are part of the program, as texts: see assets.S. */
#ifndef HF_LAB_ASSETS_H
#define HF_LAB_ASSETS_H

extern const char asset_fence_sql[];   /* share/holdfast/fence.sql */
extern const char asset_report_html[]; /* src/lab/report.html, and its style and script */
extern const char asset_report_css[];
extern const char asset_report_js[];
extern const char asset_chart_js[]; /* Chart.js, with its notice at the top */

#endif
