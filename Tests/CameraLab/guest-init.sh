#!/bin/busybox sh
# shellcheck shell=dash
# The guest's init: mounts the host's root under a throw-away overlay, loads the
# camera's driver, runs the command, hands its exit code back, powers off.
# All of it is busybox: a dynamic program takes 0.1 to 0.4 s to start under TCG.

/bin/busybox --install -s /bin
export PATH=/bin
ROOT=/root

mount_kernel_filesystems() {
    mount -t proc proc /proc
    if grep -q camera-lab.probe /proc/cmdline; then
        echo CAMERA-LAB-PROBE
        poweroff -f
    fi
    mount -t devtmpfs dev /dev
    mount -t sysfs sys /sys
}

load_boot_modules() {
    while read -r module; do insmod "/modules/$module"; done </modules/order
}

mount_host() {
    mkdir -p /host /control /overlay $ROOT /lib/modules
    local options=trans=virtio,version=9p2000.L,msize=512000
    mount -t 9p -o $options,ro,cache=loose host /host
    mount -t 9p -o $options control /control
    mount -t tmpfs -o mode=755 overlay /overlay
    mkdir /overlay/upper /overlay/work
    mount -t overlay -o lowerdir=/host,upperdir=/overlay/upper,workdir=/overlay/work root $ROOT
}

# One module a line, with its options. The kernel loads further ones by itself,
# in this root, so it must be given busybox's modprobe.
load_camera_modules() {
    mount --bind "/host$MODULE_TREE/lib/modules" /lib/modules
    echo /bin/modprobe >/proc/sys/kernel/modprobe
    echo "$MODULES" | while read -r module options; do
        [ -n "$module" ] || continue
        # shellcheck disable=SC2086 # the options are words
        modprobe "$module" $options || echo "camera-lab: cannot load $module" >/dev/console
    done
}

# What udev would make: bash's <( ) needs /dev/fd.
complete_dev() {
    mkdir -p /dev/pts /dev/shm
    mount -t devpts devpts /dev/pts
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    ln -s /proc/self/fd /dev/fd
    ln -s /proc/self/fd/0 /dev/stdin
    ln -s /proc/self/fd/1 /dev/stdout
    ln -s /proc/self/fd/2 /dev/stderr
}

furnish_root() {
    mkdir -p $ROOT/proc $ROOT/sys $ROOT/dev $ROOT/run $ROOT/lib/modules
    for folder in proc sys dev; do mount --rbind /$folder $ROOT/$folder; done
    mount -t tmpfs -o mode=755 tmpfs $ROOT/run
    mkdir $ROOT/run/camera-lab
    mount --bind /control $ROOT/run/camera-lab
    mount --bind "/host$MODULE_TREE/lib/modules" $ROOT/lib/modules
}

# A virtio port can be opened once only, so the command gets pipes and two cats carry them.
run_command() {
    for port in /sys/class/virtio-ports/*; do
        read -r name <"$port/name"
        ln -s "/dev/${port##*/}" "/$name"
    done
    mkfifo /out /err
    cat /out >/camera-lab.out & out=$!
    cat /err >/camera-lab.err & err=$!
    chroot $ROOT /bin/bash /run/camera-lab/command </dev/null >/out 2>/err
    echo $? >/control/status
    wait_for_output $out $err
}

# What the command left running would hold the pipes open: 1 s at most.
wait_for_output() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        kill -0 "$1" 2>/dev/null || kill -0 "$2" 2>/dev/null || break
        usleep 100000
    done
}

run_interactively() {
    setsid cttyhack chroot $ROOT /bin/bash /run/camera-lab/command </dev/ttyS0 >/dev/ttyS0 2>&1
    echo $? >/control/status
}

mount_kernel_filesystems
load_boot_modules
mount_host
. /control/configuration
ip link set lo up
hostname camera-lab
load_camera_modules
complete_dev
furnish_root
if [ -n "$INTERACTIVE" ]; then run_interactively; else run_command; fi
poweroff -f
