# A new Debian in a directory, for scripts that try things on one (bash; sourced).  The caller sets `root`, the
# directory, and `environment`, a list, and has a function `fail`.

# The mirror that this machine uses for Debian, if it is a Debian.
mirror() {
    local found
    found=$(sed -n 's/^URIs: *\([^ ]*\/debian\)\/* *$/\1/p; s/^deb \(\[[^]]*\] \)*\([^ ]*\/debian\)\/* .*/\2/p' \
        /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
    printf '%s\n' "${found:-http://deb.debian.org/debian}"
}

# The new machine reaches mirrors and registries in the same way as this one.
copy_network_settings() {
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    apt-config dump 2>/dev/null | grep -Ei '^Acquire::https?::Proxy' >"$root/etc/apt/apt.conf.d/99proxy"
    if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
        cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
        chroot "$root" update-ca-certificates >/dev/null 2>&1
        environment+=(NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt)
    fi
    local name registry
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
        [ -z "${!name:-}" ] || environment+=("$name=${!name}")
    done
    registry=$(cd / && npm config get registry 2>/dev/null)
    [ -z "$registry" ] || environment+=("npm_config_registry=$registry")
}
