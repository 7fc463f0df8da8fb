#!/bin/sh
# Installs Chromium and Node.js if they are missing, for the tests of the page of `pdawl ui`. With
# `--check` it installs nothing; its status says whether both are there.
set -eu

have_all() {
    { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null &&
        command -v node >/dev/null && command -v npm >/dev/null
}

if have_all; then
    exit 0
fi
if [ "${1:-}" = --check ]; then
    exit 1
fi

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

echo "installing Chromium and Node.js"
if command -v apt-get >/dev/null; then
    as_root apt-get update -q
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium \
        fonts-dejavu-core nodejs npm
elif command -v dnf >/dev/null; then
    as_root dnf install -y chromium nodejs npm
elif command -v pacman >/dev/null; then
    as_root pacman -S --noconfirm --needed chromium nodejs npm
elif command -v zypper >/dev/null; then
    as_root zypper --non-interactive install chromium nodejs npm
else
    echo "no known package manager: install Chromium, Node.js and npm manually" >&2
    exit 1
fi

if ! have_all; then
    echo "Chromium, Node.js or npm is still missing" >&2
    exit 1
fi
