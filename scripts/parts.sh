# Parts of a deployment that a script runs on this machine, to try it out (bash; sourced by scripts/cluster and
# scripts/cell).  A part is a process with a name, such as server2, that the function start_server starts when it is called
# with 2.  The caller sets `dir`, the directory of data and logs, `restart_s` and `program`, its own name.

stop_max_s=20
declare -A pids=()
temporary=

say() { printf '%s\n' "$*"; }
fail() { say "$program: $*" >&2 && exit 1; }

# Makes the directory, and keeps other runs out of it.
take_dir() {
    mkdir -p "$dir" || exit 1
    dir=$(cd "$dir" && pwd)
    exec 8>"$dir/lock"
    flock -n 8 || fail "another $program is running in $dir"
}

# check_ports NAMES PORT...: fails if one is taken; NAMES are the variables that choose others.
check_ports() {
    local names=$1 n
    shift
    for n in "$@"; do
        ! (exec 3<>"/dev/tcp/127.0.0.1/$n") 2>/dev/null || fail "port $n is taken; choose others with $names"
    done
}

# Runs a part: part NAME SIGNAL COMMAND...  Sets $! to its pid; its output goes to NAME.log.  Each part has a session of its
# own, so that Ctrl-C reaches only the script, and ends by the signal with the script.
part() {
    local name=$1 signal=$2
    shift 2
    SERVER_SIGNAL=$signal setsid setpriv --pdeathsig "$signal" "$@" >>"$dir/$name.log" 2>&1 8>&- </dev/null &
}

# ---- PostgreSQL ----

# Sets `database` to the URL of the database, which start_database makes.
prepare_postgres() {
    data=$dir/postgres
    mkdir -p "$data" && chmod 700 "$data"
    if ! scripts/server postgres-tool "$data" test -w "$data"; then # the checkout is in a private home directory
        rmdir "$data"
        data=/var/tmp/holdfast-$program-$(printf %s "$dir" | cksum | cut -d' ' -f1)
        mkdir -p "$data" && chmod 700 "$data"
    fi
    sockets=$data
    if [ ${#sockets} -gt 85 ]; then # a socket's path has at most 107 bytes
        sockets=$(mktemp -d /tmp/holdfast-$program.XXXXXX)
        temporary=$sockets
        scripts/server postgres-tool "$sockets" true
    fi
    database="postgresql://holdfast@/holdfast?host=$sockets"
}

start_postgres() { part postgres INT scripts/server postgres "$data" 5432 -k "$sockets" -c listen_addresses=; }

start_database() {
    launch postgres
    await postgres "$bin/pg_isready" -q -h "$sockets" -U holdfast
    "$bin/psql" -h "$sockets" -U holdfast -d postgres -qAtc \
        "SELECT 1 FROM pg_database WHERE datname = 'holdfast'" | grep -q 1 ||
        "$bin/createdb" -h "$sockets" -U holdfast holdfast || fail "cannot create the database"
}

# ---- start, watch, stop ----

launch() {
    "start_${1%%[0-9]*}" "${1##*[a-z]}"
    pids[$1]=$!
}

answers() { curl -sf -m 2 -o /dev/null "http://127.0.0.1:$1/readyz"; }

# Waits until the probe succeeds.  If the part ends instead, prints the end of its log and fails.
await() {
    local name=$1 i
    shift
    for ((i = 0; i < 600; i++)); do # initdb alone may take many seconds
        "$@" >/dev/null 2>&1 && return
        kill -0 "${pids[$name]}" 2>/dev/null || break
        sleep 0.1
    done
    tail -n 5 "$dir/$name.log" >&2
    fail "$name did not start; see $dir/$name.log"
}

name_of() {
    local name
    for name in "${!pids[@]}"; do [ "${pids[$name]}" != "$1" ] || echo "$name"; done
}

# Restarts parts that end, until a signal ends the script.
watch() {
    local ended name
    exec 7<> <(:)
    while { wait -n -p ended "${pids[@]}"; } 2>/dev/null; [ -n "${ended:-}" ]; do
        name=$(name_of "$ended")
        say "$name (pid $ended) has ended; starting it again in $restart_s s"
        read -r -t "$restart_s" -u 7
        launch "$name"
        say "$name is pid ${pids[$name]}"
    done
}

stop_part() {
    local name=$1 signal=$2 pid=${pids[$1]:-} i
    [ -n "$pid" ] && kill -"$signal" "$pid" 2>/dev/null || return 0
    for ((i = 0; i < stop_max_s * 20; i++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    kill -KILL "$pid" 2>/dev/null && say "$name had to be killed"
    wait "$pid" 2>/dev/null
}
