//! Files of the kernel that command the machine.

use std::fs;

use super::canary::Canary;
use super::run;
use crate::containers::leftovers::hierarchies;
use crate::containers::machine::machine;
use crate::support::shown;

/// Files of which writing one is a way to run a program on this machine, or to stop it.
const COMMANDS: [&str; 12] = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hotplug",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/fs/binfmt_misc/register",
    "/proc/sysrq-trigger",
    "/proc/irq/default_smp_affinity",
    "/sys/kernel/uevent_helper",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/power/state",
    "/sys/module/kernel/parameters/panic",
    "/sys/kernel/debug/tracing/trace",
];

#[test]
fn files_that_command_the_machine_cannot_be_written() {
    let Some(machine) = machine() else { return };
    let read = |file: &&str| fs::read(file).ok();
    let before: Vec<_> = COMMANDS.iter().map(read).collect();
    // The tests write the value that the file has already, so even a success does no harm.
    let script = COMMANDS.map(|file| format!("test -e {file} && (cat {file} > /tmp/was; cat /tmp/was > {file}) 2>/dev/null && echo wrote {file}")).join("; ");
    machine.start("held", &[], "sleep 1000");
    let exec =
        run::ended("exec", machine.command(&["exec", "held", "/bin/sh", "-c", &format!("{script}; true")]));
    for output in [run::sh(&machine, "run", &[], &format!("{script}; true")), exec] {
        assert!(run::ran("writing", &output) && !shown(&output).contains("wrote"), "{}", shown(&output));
    }
    assert_eq!(COMMANDS.iter().map(read).collect::<Vec<_>>(), before);
}

#[test]
fn files_that_describe_the_machine_are_empty() {
    let Some(machine) = machine() else { return };
    let script = "for file in /proc/kcore /proc/keys /proc/timer_list /proc/interrupts /proc/latency_stats /proc/sched_debug
do test -e $file && head -c 64 $file | wc -c; done | grep -v '^0$'
for directory in /proc/acpi /proc/scsi /sys/firmware /sys/devices/virtual/powercap; do test -d $directory && ls $directory; done
(timeout 5 head -c 1 /proc/kmsg) 2>/dev/null; dmesg 2>/dev/null; grep -v '^0*0 ' /proc/kallsyms | head -1; true";
    let output = run::sh(&machine, "reading", &[], script);
    assert!(run::ran("reading", &output), "{}", shown(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{}", shown(&output));
}

#[test]
fn control_groups_can_only_be_read() {
    // CVE-2023-25809, and the release_agent way out: a program the kernel starts on this machine when a group is empty.
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    let before: Vec<_> =
        hierarchies().iter().map(|directory| fs::read(directory.join("release_agent")).ok()).collect();
    let script = format!(
        "find /sys/fs/cgroup -type d 2>/dev/null | while read directory; do
mkdir $directory/new 2>/dev/null && test -e $directory/new/cgroup.procs && echo made $directory/new
for file in release_agent notify_on_release cgroup.procs tasks devices.allow memory.limit_in_bytes memory.max cgroup.subtree_control
do test -e $directory/$file && (echo 1 > $directory/$file) 2>/dev/null && echo wrote $directory/$file; done; done
mkdir /tmp/group; mount -t cgroup -o rdma x /tmp/group 2>/dev/null && echo mounted
mount -t cgroup -o memory x /tmp/group 2>/dev/null && echo mounted; mount -t cgroup2 x /tmp/group 2>/dev/null && echo mounted
mount -o remount,rw /sys/fs/cgroup 2>/dev/null && echo mounted; umount /sys/fs/cgroup 2>/dev/null && echo mounted; {}",
        canary.raid()
    );
    machine.start("held", &[], "sleep 1000");
    let exec = run::ended("exec", machine.command(&["exec", "held", "/bin/sh", "-c", &script]));
    for output in [run::sh(&machine, "run", &[], &script), exec] {
        assert!(run::ran("control groups", &output), "{}", shown(&output));
        for word in ["made", "wrote", "mounted"] {
            assert!(!shown(&output).contains(word), "{}", shown(&output));
        }
        canary.is_safe("control groups", &output);
    }
    let after: Vec<_> =
        hierarchies().iter().map(|directory| fs::read(directory.join("release_agent")).ok()).collect();
    assert_eq!(after, before);
}

#[test]
fn nothing_that_is_mounted_can_be_changed_or_taken_off() {
    let Some(machine) = machine() else { return };
    let script = "for place in / /proc /proc/sys /proc/keys /sys /sys/firmware /dev /dev/shm /etc/hosts
do umount $place 2>/dev/null && echo off $place; umount -l $place 2>/dev/null && echo off $place
mount -o remount,rw $place 2>/dev/null && echo writable $place; mount -o bind,remount,rw $place 2>/dev/null && echo writable $place; done
mount -t proc x /tmp 2>/dev/null && echo fresh proc; mount -t sysfs x /tmp 2>/dev/null && echo fresh sys; mount -o bind / /tmp 2>/dev/null && echo bound
unshare -m true 2>/dev/null && echo unshared; unshare -U true 2>/dev/null && echo unshared; unshare -r true 2>/dev/null && echo unshared
nsenter -t 1 -m true 2>/dev/null && echo entered; true";
    for options in [&[][..], &["--user", "ann"]] {
        let output = run::sh(&machine, "mounts", options, script);
        assert!(run::ran("mounts", &output), "{}", shown(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{options:?}");
    }
}
