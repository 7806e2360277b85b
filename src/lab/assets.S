/* Files that are part of the program, each ended by a NUL.  The Makefile defines CHART_JS.  See
 * src/api/openapi.S for why this is assembly. */
    .section .rodata
    .macro asset name, path
    .global \name
\name:
    .incbin "\path"
    .byte 0
    .endm
    asset asset_fence_sql, share/holdfast/fence.sql
    asset asset_report_html, src/lab/report.html
    asset asset_report_css, src/lab/report.css
    asset asset_report_js, src/lab/report.js
    .global asset_chart_js
asset_chart_js:
    .incbin CHART_JS
    .byte 0
    .section .note.GNU-stack, "", %progbits
