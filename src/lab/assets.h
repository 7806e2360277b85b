/* Files that assets.S makes part of the program, each as a string. */
#ifndef HF_LAB_ASSETS_H
#define HF_LAB_ASSETS_H

extern const char asset_fence_sql[];   /* share/holdfast/fence.sql */
extern const char asset_report_html[]; /* src/lab/report.html */
extern const char asset_report_css[];  /* its style */
extern const char asset_report_js[];   /* its script */
extern const char asset_chart_js[];    /* Chart.js, with its copyright notice */

#endif
