# The guest's kernel, modules and initramfs, made once from Debian's unpacked
# kernel package. Sourced by camera-lab.
# shellcheck shell=bash disable=SC2154

# In the initramfs, loaded by insmod in the order that depmod finds.
BOOT_MODULES=(virtio_pci virtio_console 9pnet_virtio 9p overlay)
# Read over 9p when asked for.
LAB_MODULES=(vivid uvcvideo vhci_hcd veth sch_netem sch_tbf)

# command:package
TOOLS=(qemu-system-x86_64:qemu-system-x86 busybox:busybox-static depmod:kmod cpio:cpio xz:xz-utils
    v4l2-ctl:v4l-utils cc:gcc ffmpeg:ffmpeg pgrep:procps)

require_tools() {
    local tool missing=()
    for tool in "${TOOLS[@]}"; do
        command -v "${tool%%:*}" >/dev/null || missing+=("${tool#*:}")
    done
    ((${#missing[@]} == 0)) ||
        fail "missing; as root: apt-get install --no-install-recommends ${missing[*]}"
}

prepare_image() {
    require_tools
    mkdir -p "$CACHE"
    exec 9>"$CACHE/lock"
    flock 9
    # A change of the module lists or of a script that goes into the image makes a new one.
    local key
    key=$(cat "$LAB/guest-image.sh" "$LAB/guest-init.sh" | cksum)
    if [[ $(cat "$CACHE/ready" 2>/dev/null) != "$key" ]]; then
        build_image
        echo "$key" >"$CACHE/ready"
    fi
    exec 9>&-
}

build_image() {
    local tree=$CACHE/tree initramfs=$CACHE/initramfs release
    rm -rf "$CACHE"/{ready,accelerator,tree,initramfs,modules}
    mkdir -p "$tree" "$initramfs"/{bin,dev,modules,proc,sys} "$CACHE/modules"
    download_kernel
    unpack_kernel "$tree"
    release=$(basename "$tree"/lib/modules/*)
    extract_vmlinux "$tree/boot/vmlinuz-$release"
    depmod -b "$tree" "$release"
    keep_modules "$tree" "$release"
    write_initramfs "$tree" "$release" "$initramfs"
    rm -rf "$tree" "$initramfs"
}

# The kernel's package name carries its ABI number, so it is found through the metapackage.
kernel_package() {
    apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/.*Depends: *\(linux-image-[^ ]*\)/\1/p' | head -n 1
}

download_kernel() {
    [[ -z $(compgen -G "$CACHE/linux-image-*.deb") ]] || return 0
    local package
    package=$(kernel_package)
    [[ -n $package ]] || fail "apt knows no kernel package; as root: apt-get update"
    say "downloading $package (about 70 MB)"
    (cd "$CACHE" && apt-get download "$package" >&2) ||
        fail "cannot download $package; if apt's lists are old, as root: apt-get update"
}

unpack_kernel() {
    local package
    package=$(compgen -G "$CACHE/linux-image-*.deb" | head -n 1)
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$1" ./boot ./lib/modules || {
        rm -f "$package"
        fail "${package##*/} cannot be unpacked and was removed; run again"
    }
}

# QEMU boots the uncompressed ELF kernel directly, 3 s sooner under TCG than the bzImage around it.
extract_vmlinux() {
    local offset
    offset=$(LC_ALL=C grep -abo -m 1 $'\xfd7zXZ' "$1" | head -n 1 | cut -d: -f1) || true
    # xz complains about what follows the kernel in the file.
    tail -c "+$((${offset:-0} + 1))" "$1" | xz -dcq >"$CACHE/vmlinux" 2>/dev/null || true
    [[ $(head -c 4 "$CACHE/vmlinux" | tail -c 3) == ELF ]] || cp "$1" "$CACHE/vmlinux"
}

# Prints the files of the modules and of all they depend on, in loading order.
# Usage: module_files TREE RELEASE MODULE...
module_files() {
    local tree=$1 release=$2 module
    shift 2
    for module; do
        modprobe -d "$tree" -S "$release" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
    done | awk '!seen[$0]++'
}

keep_modules() {
    local tree=$1 release=$2
    module_files "$tree" "$release" "${BOOT_MODULES[@]}" "${LAB_MODULES[@]}" | sed "s#^$tree/##" |
        (cd "$tree" && cpio -pdm --quiet "$CACHE/modules")
    cp "$tree/lib/modules/$release"/modules.{order,builtin,builtin.modinfo} "$CACHE/modules/lib/modules/$release/"
    depmod -b "$CACHE/modules" "$release"
}

write_initramfs() {
    local tree=$1 release=$2 root=$3
    module_files "$tree" "$release" "${BOOT_MODULES[@]}" >"$root/modules/order"
    xargs cp -t "$root/modules" <"$root/modules/order"
    sed -i 's#.*/##' "$root/modules/order"
    cp "$(command -v busybox)" "$root/bin/busybox"
    install -m 755 "$LAB/guest-init.sh" "$root/init"
    (cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet >"$CACHE/initrd")
}
