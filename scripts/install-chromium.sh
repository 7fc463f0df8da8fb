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

. "$(dirname "$0")/packages.sh"
packages "Chromium, Node.js and npm" \
    "--no-install-recommends chromium fonts-dejavu-core nodejs npm" \
    "chromium nodejs npm" "chromium nodejs npm" "chromium nodejs npm"

if ! have_all; then
    echo "Chromium, Node.js or npm is still missing" >&2
    exit 1
fi
