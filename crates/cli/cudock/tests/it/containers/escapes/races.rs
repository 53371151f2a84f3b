//! Volumes that change while others are mounted into them.

use std::fs;

use super::canary::Canary;
use super::links::mirror;
use super::run;
use crate::containers::machine::machine;
use crate::containers::programs::install;

const TRIES: usize = 100;

/// Exchanges a directory and a link for as long as it lives.
const SWAP: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
int main(int argc, char **argv) {
    (void)argc;
    puts("swapping");
    fflush(stdout);
    for (;;) renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE);
}
"#;

#[test]
fn a_directory_that_is_swapped_for_a_link_leads_no_mount_outside() {
    // CVE-2021-30465: one container swaps, others are mounted into the same volume.
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "swap", SWAP) else { return };
    let canary = Canary::new();
    mirror(&machine, &canary);
    let volume = machine.path().join("volume");
    fs::create_dir_all(volume.join("directory")).unwrap();
    let up = format!("../../../../../../../../../../../..{}", canary.path());
    std::os::unix::fs::symlink(&up, volume.join("link")).unwrap();
    machine.write("given/mark", "given\n");
    let shared = format!("{}:/vol", volume.display());
    machine.start("swapper", &["-v", &shared], "exec swap /vol/directory /vol/link");
    machine.until_logged("swapper", "swapping");
    let mut begun = 0;
    for number in 0..TRIES {
        let options: &[&str] = match number % 4 {
            0 => &["-v", &shared, "-v", "given:/vol/directory/new"],
            1 => &["-v", &shared, "--tmpfs", "/vol/directory/new"],
            2 => &["-v", &shared, "-v", "given/mark:/vol/directory/new-file"],
            _ => &["-v", &shared, "-w", "/vol/directory/new-work"],
        };
        let what = format!("{options:?}, try {number}");
        let output = run::sh(&machine, &what, options, &canary.raid());
        begun += usize::from(run::ran(&what, &output));
        canary.is_safe(&what, &output);
    }
    assert!(begun > 0, "not one of {TRIES} containers began, so nothing was tried");
}

#[test]
fn a_directory_that_is_swapped_for_the_root_brings_no_dev_of_its_own() {
    // A mount that lands on the container's root during setup has a /dev, in which nodes are then created.
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "swap", SWAP) else { return };
    let canary = Canary::new();
    let (volume, given) = (machine.path().join("volume"), machine.path().join("given"));
    fs::create_dir_all(volume.join("directory")).unwrap();
    fs::create_dir_all(&given).unwrap();
    std::os::unix::fs::symlink("/", volume.join("link")).unwrap();
    std::os::unix::fs::symlink(canary.path(), given.join("dev")).unwrap();
    let shared = format!("{}:/vol", volume.display());
    machine.start("swapper", &["-v", &shared], "exec swap /vol/directory /vol/link");
    machine.until_logged("swapper", "swapping");
    for number in 0..TRIES {
        let what = format!("try {number}");
        let output = run::sh(&machine, &what, &["-v", &shared, "-v", "given:/vol/directory"], "true");
        canary.is_safe(&what, &output);
    }
}
