#!/usr/bin/env bash
# A cluster of emulated nodes on this machine, for measurements of `pdawl run` with mpirun.
#
#   scripts/emulated-nodes.sh make N [--rate 1gbit] [--share 0.2] [--slow NODE=FACTOR]...
#   scripts/emulated-nodes.sh run [--on NODE,NODE...] [--recover] [--unlimited] PROGRAM ARGUMENT...
#   scripts/emulated-nodes.sh slow NODE FACTOR
#   scripts/emulated-nodes.sh remove
#
# A node is a network namespace on a bridge. Its link carries --rate in each direction. The
# worker thread of a node's rank gets --share of a core, times the node's FACTOR (1 without).
# The thread that drives a rank is not limited, so all shares together must leave room on
# this machine's cores. A worker computes in turns, so a subtask should take much longer than
# a turn's period, which is 0.5 ms / share / factor.
#
# `run` starts one rank a node, which must have one worker (`pdawl run ... --devices host:1`).
# All messages go over TCP. --on chooses nodes, and --recover lets ranks go on after one is
# lost. With --unlimited no worker is looked for, which takes processor time until one is there.
# When it ends or is interrupted it ends what still runs on the nodes. `slow` changes a
# node's speed, also while a program runs.
#
# Needs root, iproute2, util-linux and Open MPI. Shares are those of Linux' deadline
# scheduling, which enforces them exactly, also while other programs run. Quotas of cgroups
# would do, but Linux 6.18 left a thread that got one in mid-run without any time for good.
set -euo pipefail

NAME=pdawl
SUBNET=10.77.0
# Where the nodes' speeds and workers are noted between commands.
STATE=/run/$NAME-nodes
# While there are nodes it is -1: shares are then given without a look at what is left. That
# look refuses threads that are bound to a core, and Linux 6.18 counts wrongly for it.
ADMISSION=/proc/sys/kernel/sched_rt_runtime_us
# Nanoseconds of computing in a period. The period follows from a node's speed. The kernel
# looks at a thread's time each 1 to 4 ms, and subtracts what was too much later.
TURN=500000

fail() {
    echo "emulated-nodes.sh: $*" >&2
    exit 1
}

usage() {
    sed -n '2,/^set/{/^#/!d; s/^# \{0,1\}//; p}' "$0" >&2
    exit 2
}

need() {
    [ "$(id -u)" = 0 ] || fail "network namespaces need root: run it with sudo"
    local program
    for program in ip tc nsenter unshare taskset chrt awk "$@"; do
        command -v "$program" >/dev/null || fail "$program is missing: install iproute2," \
            "util-linux, awk and Open MPI (openmpi-bin)"
    done
}

# Fails unless $1 is a number above 0 and at most 1.
check_fraction() {
    awk -v x="$1" 'BEGIN { exit !(x ~ /^[0-9.]+$/ && x > 0 && x <= 1) }' ||
        fail "$1 is no part of a speed: give a number above 0, at most 1"
}

count() {
    cat "$STATE/count" 2>/dev/null || fail "there are no nodes: $0 make N"
}

check_node() {
    local nodes
    nodes=$(count)
    [[ $1 =~ ^[0-9]+$ ]] && [ "$1" -lt "$nodes" ] ||
        fail "there is no node $1: nodes are 0 to $((nodes - 1))"
}

# Gives node $1 the part $2 of the share, from now on.
set_speed() {
    echo "$2" >"$STATE/speed$1"
    if [ -e "$STATE/worker$1" ] && [ -d "/proc/$(cat "$STATE/worker$1")" ]; then
        limit_worker "$1"
    fi
}

# Limits the worker of node $1 to the node's speed.
limit_worker() {
    local worker period
    worker=$(cat "$STATE/worker$1")
    period=$(awk -v t=$TURN -v s="$(cat "$STATE/share")" -v f="$(cat "$STATE/speed$1")" \
        'BEGIN { printf "%.0f", t / s / f }')
    chrt --deadline --sched-runtime $TURN --sched-deadline "$period" \
        --sched-period "$period" --pid 0 "$worker" ||
        fail "node $1 gets no share of the processor: Linux with deadline scheduling is needed"
}

make_node() {
    local node=$1 rate=$2 space=$NAME$1 link=$NAME-link$1
    ip netns add "$space"
    ip link add "$link" type veth peer name eth0 netns "$space"
    ip link set "$link" master $NAME-bridge up
    ip -n "$space" address add "$SUBNET.$((node + 1))/24" dev eth0
    ip -n "$space" link set lo up
    ip -n "$space" link set eth0 up
    # A burst of four of the largest packets, of 64 KiB: with less, tc divides packets, which
    # takes the processor more than the rate allows.
    tc qdisc add dev "$link" root tbf rate "$rate" burst 256k latency 50ms
    tc -n "$space" qdisc add dev eth0 root tbf rate "$rate" burst 256k latency 50ms
}

make_nodes() {
    [[ ${1:-} =~ ^[0-9]+$ ]] && [ "$1" -ge 1 ] && [ "$1" -le 100 ] || usage
    local nodes=$1 rate=1gbit share=0.2 node slow=()
    shift
    while [ $# -gt 0 ]; do
        [ $# -ge 2 ] || usage
        case $1 in
        --rate) rate=$2 ;;
        --share) share=$2 ;;
        --slow) slow+=("$2") ;;
        *) usage ;;
        esac
        shift 2
    done
    check_fraction "$share"
    need mpirun
    [ ! -e "$STATE" ] || fail "there are nodes: $0 remove"
    # Whatever fails or interrupts leaves nothing behind.
    trap remove_all EXIT
    mkdir -p "$STATE"
    echo "$share" >"$STATE/share"
    echo "$nodes" >"$STATE/count"
    cat $ADMISSION >"$STATE/admission"
    echo -1 >$ADMISSION
    ip link add $NAME-bridge type bridge
    ip link set $NAME-bridge up
    for ((node = 0; node < nodes; node++)); do
        make_node "$node" "$rate"
        set_speed "$node" 1
    done
    for node in ${slow[@]+"${slow[@]}"}; do
        [[ $node == *=* ]] || fail "--slow $node is not NODE=FACTOR"
        change_speed "${node%%=*}" "${node#*=}"
    done
    trap - EXIT
}

change_speed() {
    check_node "$1"
    check_fraction "$2"
    set_speed "$1" "$2"
}

spaces() {
    ip netns list | awk -v name=$NAME '$1 ~ "^" name "[0-9]+$" { print $1 }'
}

# Ends what runs in these namespaces.
end_processes() {
    local space process
    for space in "$@"; do
        for process in $(ip netns pids "$space"); do
            # It may have ended by itself.
            kill -9 "$process" 2>/dev/null || true
        done
    done
}

# Removes what is there, also after a `make` that failed in between.
remove_all() {
    trap - EXIT
    local space
    # Names have no spaces.
    end_processes $(spaces)
    for space in $(spaces); do
        # The namespace's link goes with it, but only later.
        ip link delete "$NAME-link${space#"$NAME"}" 2>/dev/null || true
        ip netns delete "$space"
    done
    ip link delete $NAME-bridge 2>/dev/null || true
    if [ -e "$STATE/admission" ]; then
        cat "$STATE/admission" >$ADMISSION
    fi
    rm -rf "$STATE"
}

# Runs a program with mpirun, on all nodes or those of --on.
run() {
    local nodes options=() hosts="" used="" node number=0 status=0 kind=rank
    # A command of its own, so that its failure ends the script.
    nodes=$(count)
    nodes=$(seq 0 $((nodes - 1)))
    while [ $# -gt 0 ]; do
        case $1 in
        --on)
            [ $# -ge 2 ] || usage
            nodes=${2//,/ }
            shift 2
            ;;
        --recover)
            options+=(--enable-recovery)
            shift
            ;;
        --unlimited)
            kind=free-rank
            shift
            ;;
        *) break ;;
        esac
    done
    [ $# -gt 0 ] || usage
    need mpirun
    for node in $nodes; do
        check_node "$node"
        rm -f "$STATE/worker$node"
        hosts+=${hosts:+,}$SUBNET.$((node + 1)):1
        used+=" $NAME$node"
        number=$((number + 1))
    done
    # Other nodes may have another run.
    trap "end_processes $used" EXIT
    # In the background, since bash handles no signal while it waits for another program.
    # mpirun is on the first of the nodes. `tcp,self` keeps messages off shared memory, which
    # real nodes do not have in common.
    enter "${nodes%%[!0-9]*}" mpirun --allow-run-as-root \
        --mca plm_rsh_agent "$(readlink -f "$0") on" --mca btl tcp,self --mca pml ob1 \
        --host "$hosts" -n "$number" --map-by node --bind-to none \
        ${options[@]+"${options[@]}"} "$(readlink -f "$0")" $kind "$@" &
    wait $! || status=$?
    exit $status
}

# Runs a command on a node. Host names tell Open MPI that nodes are not one machine.
enter() {
    local space=$NAME$1
    shift
    nsenter --net="/run/netns/$space" unshare --uts \
        sh -c 'hostname "$1"; shift; exec "$@"' sh "$space" "$@"
}

# What mpirun starts instead of ssh: runs the words of a command line on the node of an
# address.
on() {
    local node=$((${1##*.} - 1))
    shift
    enter "$node" sh -c "$*"
}

# A rank: becomes the program, whose driver is on the core that the fewest nodes share.
rank() {
    local node
    node=$(hostname)
    node=${node#"$NAME"}
    [ "$command" = free-rank ] || find_worker "$node" $$ &
    exec taskset -c $((node % $(nproc))) "$@"
}

# Waits for the worker thread of a process, which the program names `host:1 #CORE`, and
# limits it. Nothing but its name tells that it is there. The process stands still meanwhile,
# so that nothing is computed at full speed.
find_worker() {
    local task name
    # Otherwise this would be late where drivers keep all cores busy.
    chrt --fifo --pid 1 $BASHPID
    while [ -d "/proc/$2" ]; do
        for task in "/proc/$2/task/"*; do
            name=""
            { read -r name <"$task/comm"; } 2>/dev/null || continue
            if [[ $name == host:1* ]]; then
                kill -STOP "$2"
                echo "${task##*/}" >"$STATE/worker$1"
                # Where it fails, a run must not go on at a wrong speed.
                (limit_worker "$1") && kill -CONT "$2" || kill -KILL "$2"
                return
            fi
        done
        sleep 0.002
    done
}

command=${1:-}
[ $# -gt 0 ] && shift
case $command in
make) make_nodes "$@" ;;
run) run "$@" ;;
slow)
    [ $# = 2 ] || usage
    need
    change_speed "$1" "$2"
    ;;
remove)
    need
    remove_all
    ;;
on) on "$@" ;;
rank | free-rank) rank "$@" ;;
*) usage ;;
esac
