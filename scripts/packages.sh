# For the scripts beside it, which source it.

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs WHAT, whose packages apt-get, dnf, pacman and zypper call so: packages WHAT APT DNF PACMAN
# ZYPPER. Each list is words.
packages() {
    echo "installing $1"
    # shellcheck disable=SC2086
    if command -v apt-get >/dev/null; then
        as_root apt-get update -q
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q $2
    elif command -v dnf >/dev/null; then
        as_root dnf install -y $3
    elif command -v pacman >/dev/null; then
        as_root pacman -S --noconfirm --needed $4
    elif command -v zypper >/dev/null; then
        as_root zypper --non-interactive install $5
    else
        echo "no known package manager: install $1 manually" >&2
        exit 1
    fi
}
