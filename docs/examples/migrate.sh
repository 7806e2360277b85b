#!/bin/sh
# A migration runner: every instance of a service calls it when it starts.  The first one migrates,
# the others wait for it and then find nothing to do.  Here the database is an SQLite file; the
# migrations are SQL files, applied in the order of their names.
#
#   migrate.sh DATABASE FILE.sql...
set -eu

if [ "${HOLDFAST_LOCK_NAME-}" != migrations ]; then # not yet under the lock
    exec holdfast run --wait 10m --ttl 30s migrations -- "$0" "$@"
fi

database=$1
shift
sqlite3 "$database" 'CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY)'
for file in "$@"; do
    name=$(basename "$file")
    if [ "$(sqlite3 "$database" "SELECT count(*) FROM migration WHERE name = '$name'")" = 1 ]; then
        continue
    fi
    # A runner that was stopped for longer than its TTL ends here: another one has the lock.
    holdfast fence check --sqlite "$database"
    # The migration and the note that it is done are one transaction.
    { echo 'BEGIN IMMEDIATE;'; cat "$file"; echo "INSERT INTO migration VALUES ('$name'); COMMIT;"; } |
        sqlite3 -bail "$database"
    echo "applied $name"
done
