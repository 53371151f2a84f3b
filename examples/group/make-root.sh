#!/bin/sh
# Creates ./root with this machine's Python, the libraries it needs, and the two programs. Needs no network.
# Usage: make-root.sh [ROOT [PROGRAM…]]   (also with the libraries that each PROGRAM links)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=${1:-$here/root}
[ $# -eq 0 ] || shift
python=$(command -v python3)
rm -rf "$root"
mkdir -p "$root/bin" "$root/etc" "$root/app" "$root/dev" "$root/proc" "$root/sys" "$root/tmp"
echo 'root:x:0:0:root:/:/bin/sh' > "$root/etc/passwd"
cp "$here/service.py" "$here/gateway.py" "$root/app/"

# The real executable at its original path, from which Python finds its library.
program=$("$python" -c 'import os, sys; print(os.path.realpath(sys._base_executable))')
library=$("$python" -c 'import os; print(os.path.dirname(os.__file__))')
mkdir -p "$root$(dirname "$program")" "$root$library"
cp "$program" "$root$program"
ln -sf "$program" "$root/bin/python3"
tar -C "$library" --exclude=site-packages --exclude=dist-packages --exclude=test --exclude=__pycache__ \
    --exclude='config-*' --exclude=idlelib --exclude=tkinter -cf - . | tar -C "$root$library" -xf -

# Every library that the program and its modules link, and the loader.
dynload=$library/lib-dynload
for file in "$program" "$dynload"/*.so "$@"; do
    ldd "$file" 2>/dev/null | grep -o '/[^ ]*' || true
done | sort -u | while read -r shared; do
    mkdir -p "$root$(dirname "$shared")"
    cp -L "$shared" "$root$shared"
done
# Libraries that the driver links and Python does not.
for name in libc.so.6 libdl.so.2 libm.so.6 libpthread.so.0 librt.so.1; do
    shared=$(ldconfig -p | sed -n "s|.*$name .*x86-64.* => ||p; s|.*$name .*AArch64.* => ||p" | head -n 1)
    [ -n "$shared" ] || continue
    mkdir -p "$root$(dirname "$shared")"
    cp -L "$shared" "$root$shared"
done
echo "created $root: $(du -sh "$root" | cut -f1)"
