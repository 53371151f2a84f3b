//! Layers whose names and links point out of the directory they are unpacked to.

use cudock_testkit::tar::Tar;
use serde_json::json;

use super::canary::Canary;
use super::image;
use super::run;
use crate::containers::machine::{Machine, machine};
use crate::support::shown;

/// Runs an image with these layers; it may be refused or run, but must not change the canary.
fn attack(machine: &Machine, canary: &Canary, what: &str, layers: &[Tar]) {
    let name = image::write(
        machine,
        &what.replace(|letter: char| !letter.is_alphanumeric(), "-"),
        layers,
        &json!({}),
    );
    let script = format!("cat /stolen /out/victim 2>/dev/null; {}", canary.raid());
    let output = run::image(machine, what, &[], &name, &["/bin/sh", "-c", &script]);
    run::ran(what, &output);
    canary.is_safe(what, &output);
}

/// The canary's path from the root, by way of more parents than there are.
fn up(path: &str) -> String {
    format!("../../../../../../../../../../..{path}")
}

#[test]
fn names_that_climb_out_write_nothing_outside() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    let path = canary.path();
    for (what, name) in [
        ("a name with parents", up(&format!("{path}/new"))),
        ("a name with parents over a file", up(&canary.victim())),
        ("an absolute name", format!("{path}/new")),
        ("an absolute name over a file", canary.victim()),
        ("parents inside a name", format!("bin/{}", up(&format!("{path}/new")))),
        ("a name of parents alone", "../..".to_owned()),
        ("slashes and dots", format!("././//..//./..{path}/new")),
    ] {
        attack(&machine, &canary, what, &[Tar::default().file(&name, "from the image\n")]);
        attack(
            &machine,
            &canary,
            &format!("{what} in a directory"),
            &[Tar::default().entry_with_mode(&name, b'5', 0o777, b"")],
        );
    }
}

/// Layers that write, make and change through a link `to` the canary.
fn through_links(machine: &Machine, canary: &Canary, to: &str) {
    let link = || Tar::default().symlink("out", to);
    let victim = || Tar::default().symlink("stolen", &format!("{to}/victim"));
    let file = |path: &str| Tar::default().file(path, "x");
    for (what, layers) in [
        ("a file", vec![link().file("out/new", "x")]),
        ("a file that is there", vec![link().file("out/victim", "x")]),
        ("a file of the next layer", vec![link(), file("out/new")]),
        ("a directory in its place", vec![link().entry_with_mode("out/", b'5', 0o777, b"")]),
        ("a directory", vec![link().entry_with_mode("out/new/", b'5', 0o777, b"")]),
        ("a link", vec![link().symlink("out/new", "/")]),
        ("a pipe", vec![link().device("out/pipe", b'6', 0, 0)]),
        ("the file it points to", vec![victim().file("stolen", "x")]),
        ("the file it points to, of the next layer", vec![victim(), file("stolen")]),
        ("a file further in", vec![link().file("out/inner/kept", "x")]),
    ] {
        attack(machine, canary, &format!("through {to}: {what}"), &layers);
    }
}

#[test]
fn writing_through_an_absolute_link_of_the_image_writes_nothing_outside() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    through_links(&machine, &canary, canary.path());
}

#[test]
fn writing_through_a_relative_link_of_the_image_writes_nothing_outside() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    through_links(&machine, &canary, &up(canary.path()));
}

#[test]
fn hard_links_reach_no_file_outside() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    let victim = canary.victim();
    let link = |to: &str| Tar::default().hard_link("stolen", to);
    attack(&machine, &canary, "hard link, absolute", &[link(&victim)]);
    attack(&machine, &canary, "hard link, absolute, then written", &[link(&victim).file("stolen", "x")]);
    attack(&machine, &canary, "hard link, parents", &[link(&up(&victim))]);
    let through = Tar::default().symlink("out", canary.path()).hard_link("stolen", "out/victim");
    attack(&machine, &canary, "hard link through a link", &[through]);
    let of_a_link = Tar::default().symlink("out", &victim).hard_link("stolen", "out").file("stolen", "x");
    attack(&machine, &canary, "hard link of a link, then written", &[of_a_link]);
    let into = Tar::default().file("mine", "x").symlink("out", canary.path()).hard_link("out/new", "mine");
    attack(&machine, &canary, "hard link made outside", &[into]);
}

#[test]
fn whiteouts_remove_nothing_outside() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    let path = canary.path();
    let link = Tar::default().symlink("out", path);
    attack(&machine, &canary, "whiteout through a link", &[link.clone().file("out/.wh.victim", "")]);
    attack(
        &machine,
        &canary,
        "whiteout through a lower link",
        &[link.clone(), Tar::default().file("out/.wh.victim", "")],
    );
    attack(
        &machine,
        &canary,
        "all hidden through a link",
        &[link.clone(), Tar::default().file("out/.wh..wh..opq", "")],
    );
    attack(
        &machine,
        &canary,
        "whiteout by parents",
        &[Tar::default().file(&up(&format!("{path}/.wh.victim")), "")],
    );
    attack(&machine, &canary, "whiteout of the parent", &[Tar::default().file(".wh...", "")]);
    attack(&machine, &canary, "whiteout of the root", &[Tar::default().file(".wh..", "")]);
    attack(&machine, &canary, "whiteout of nothing", &[Tar::default().file("bin/.wh.", "")]);
}

#[test]
fn device_nodes_of_an_image_open_nothing() {
    let Some(machine) = machine() else { return };
    let nodes = Tar::default()
        .device("memory", b'3', 1, 1)
        .device("messages", b'3', 1, 11)
        .device("disk", b'4', 8, 0)
        .device("virtual-disk", b'4', 254, 0)
        .device("gpu", b'3', 195, 0)
        .device("dev/mem", b'3', 1, 1);
    let name = image::write(&machine, "nodes", &[nodes], &json!({}));
    let script = "for node in /memory /messages /disk /virtual-disk /gpu /dev/mem
do (exec 3< $node) 2>&1 && echo opened $node; (exec 3>> $node) 2>&1 && test -c $node && echo opened $node; done; true";
    let output = run::image(&machine, "device nodes", &[], &name, &["/bin/sh", "-c", script]);
    run::ran("device nodes", &output);
    assert!(!shown(&output).contains("opened"), "{}", shown(&output));
}
