#!/bin/sh
# Leader election for a service that must run on one machine: start this on all of them.  One runs
# the command.  When it loses the lock, the command is ended before another machine starts its own.
#
#   leader.sh scheduler --port 8000
#
# The command finds the number of its term in HOLDFAST_FENCE.  What it writes to should refuse
# smaller ones (docs/fences.md).
exec holdfast elect --ttl "${TTL:-15s}" --pause "${PAUSE:-1s}" scheduler -- "$@"
