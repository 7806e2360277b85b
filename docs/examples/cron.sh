#!/bin/sh
# Distributed cron: the same line in the crontab of every machine, and one of them does the work.
#
#   0 3 * * *  cron.sh report.sh
#
# -n          the others do not wait: the work is done once
# -E 0        and they are fine, so cron sends no mail
# --at-least  a machine whose clock is a little late finds the lock still held, even if the work
#             took a second
# --ttl       after this long the next run may start although the machine has died
exec holdfast run -n -E 0 --at-least "${AT_LEAST:-1m}" --ttl 30s nightly-report -- "$@"
