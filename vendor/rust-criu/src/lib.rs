//! Stands in for the crate of this name, which libcontainer needs for checkpoints.
//!
//! cudock makes no checkpoints, and the real crate brings protobuf with a code generator: a minute of a first build. Here
//! every checkpoint fails with [`Unsupported`], before anything is touched.

use std::os::fd::RawFd;

/// How CRIU would treat control groups; libcontainer only passes it on.
#[derive(Clone, Debug)]
pub struct CgMode;

/// The one error of this crate.
#[derive(Debug)]
pub struct Unsupported;

impl std::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("checkpoints are not supported")
    }
}

impl std::error::Error for Unsupported {}

/// Has no value: it cannot be created.
pub enum Criu {}

impl Criu {
    pub fn new() -> Result<Self, Unsupported> {
        Err(Unsupported)
    }

    pub fn get_criu_version(&mut self) -> Result<u32, Unsupported> {
        match *self {}
    }

    pub fn dump(&mut self) -> Result<(), Unsupported> {
        match *self {}
    }
}

macro_rules! settings {
    ($($name:ident($($type:ty),+);)+) => {
        impl Criu {
            $(pub fn $name(&mut self, $(_: $type),+) {
                match *self {}
            })+
        }
    };
}

settings! {
    add_external(String);
    cgroups_mode(CgMode);
    set_ext_unix_sk(bool);
    set_external_mount(String, String);
    set_file_locks(bool);
    set_freeze_cgroup(String);
    set_images_dir_fd(RawFd);
    set_leave_running(bool);
    set_link_remap(bool);
    set_log_file(String);
    set_log_level(i32);
    set_manage_cgroups(bool);
    set_orphan_pts_master(bool);
    set_pid(i32);
    set_root(String);
    set_shell_job(bool);
    set_tcp_established(bool);
    set_work_dir_fd(RawFd);
}

pub fn criu_ns_to_key(name: &str) -> String {
    name.to_owned()
}
