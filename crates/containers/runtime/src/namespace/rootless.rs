//! Rootless containers: the command re-executes itself in a user namespace, as root.
//!
//! If the user has subordinate ids (`/etc/subuid`, mapped by `newuidmap`), every id of an image exists inside; else only root
//! does, which is the user outside.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid};

use crate::error::{OnError, RuntimeError};

/// The variable with the parent cgroup of containers.
const CGROUP: &str = "CUDOCK_CGROUP";

/// Set in the namespace, so that a failed mapping does not lead to endless re-execution.
const INSIDE: &str = "CUDOCK_INSIDE_USER_NAMESPACE";

pub fn in_user_namespace() -> bool {
    static INSIDE: OnceLock<bool> = OnceLock::new();
    // It changes only by re-execution.
    *INSIDE.get_or_init(|| fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| !is_whole(&map)))
}

/// Whether a map is that of the initial namespace, which maps all ids to themselves.
fn is_whole(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

pub(crate) fn cgroup_parent() -> String {
    if let Some(asked) = std::env::var_os(CGROUP) {
        return asked.to_string_lossy().trim_end_matches('/').to_owned();
    }
    if in_user_namespace()
        && let Some(own) = own_unified_group()
    {
        return own;
    }
    "/cudock".to_owned()
}

/// The cgroup of this process on version 2, below which a user's session may create others.
fn own_unified_group() -> Option<String> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(path.trim_end_matches('/').to_owned()).filter(|path| !path.is_empty())
}

/// Re-executes the command as root of a user namespace if this process is not root. Returns only if it is.
pub fn become_root() -> Result<(), RuntimeError> {
    if Uid::effective().is_root() {
        return Ok(());
    }
    if std::env::var_os(INSIDE).is_some() {
        return Err(not_allowed(&io::Error::other("mapping the ids did not make this process root")));
    }
    let (uid, gid) = (Uid::effective(), Gid::effective());
    let ranges = Ranges::of(uid);
    match ranges {
        Some(ranges) => map_by_helpers(uid, gid, &ranges)?,
        None => map_self(uid, gid)?,
    }
    let program = std::env::current_exe().when("cannot locate the cudock executable")?;
    let error = Command::new(program).args(std::env::args_os().skip(1)).env(INSIDE, "1").exec();
    Err(RuntimeError::system("cannot re-execute cudock in the user namespace", error))
}

/// Joins the user namespace of a watcher, from which its container can be accessed. Returns whether that was possible.
pub fn join_watcher(pid: u32) -> bool {
    let namespace = fs::File::open(format!("/proc/{pid}/ns/user"));
    namespace.is_ok_and(|namespace| nix::sched::setns(namespace, CloneFlags::CLONE_NEWUSER).is_ok())
}

/// Whether this process is root, here or in a namespace.
pub fn is_root() -> bool {
    Uid::effective().is_root()
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Ranges {
    users: (u32, u32),
    groups: (u32, u32),
}

impl Ranges {
    fn of(uid: Uid) -> Option<Self> {
        let helpers = ["newuidmap", "newgidmap"].iter().all(|name| in_path(name));
        let name = nix::unistd::User::from_uid(uid).ok().flatten().map(|user| user.name);
        let find = |path: &str| {
            let text = fs::read_to_string(path).ok()?;
            range(&text, name.as_deref(), uid.as_raw())
        };
        let (users, groups) = (find("/etc/subuid")?, find("/etc/subgid")?);
        helpers.then_some(Self { users, groups })
    }
}

/// The first range of a user, by name or number.
fn range(text: &str, name: Option<&str>, uid: u32) -> Option<(u32, u32)> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let owner = fields.next()?;
        if Some(owner) != name && owner.parse() != Ok(uid) {
            return None;
        }
        Some((fields.next()?.parse().ok()?, fields.next()?.trim().parse().ok()?))
    })
}

fn in_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
}

/// Maps root inside to the user outside, and no other ids.
fn map_self(uid: Uid, gid: Gid) -> Result<(), RuntimeError> {
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| not_allowed(&error.into()))?;
    let write = |file: &str, text: String| {
        let path = Path::new("/proc/self").join(file);
        fs::write(&path, text).map_err(|error| not_allowed(&error))
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("0 {uid} 1"))?;
    write("gid_map", format!("0 {gid} 1"))
}

/// Maps the ids with `newuidmap` and `newgidmap`, which must run outside of the namespace: a child maps its parent once that
/// has entered it.
fn map_by_helpers(uid: Uid, gid: Gid, ranges: &Ranges) -> Result<(), RuntimeError> {
    let us = std::process::id().to_string();
    let (reader, writer) = io::pipe().when("cannot create a pipe")?;
    let ((first_user, users), (first_group, groups)) = (ranges.users, ranges.groups);
    // The shell waits until this process has entered the namespace.
    let script = r#"read _ && newuidmap "$1" 0 "$2" 1 1 "$3" "$4" && newgidmap "$1" 0 "$5" 1 1 "$6" "$7""#;
    let ids = [uid.as_raw(), first_user, users, gid.as_raw(), first_group, groups].map(|id| id.to_string());
    let mut child = Command::new("/bin/sh")
        .args(["-c", script, "sh", &us])
        .args(ids)
        .stdin(reader)
        .spawn()
        .when("cannot start newuidmap")?;
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| not_allowed(&error.into()))?;
    {
        use std::io::Write;
        let mut writer = writer;
        writer.write_all(b"go\n").when("cannot start newuidmap")?;
    }
    let status = child.wait().when("cannot wait for newuidmap")?;
    if status.success() {
        return Ok(());
    }
    Err(not_allowed(&io::Error::other(
        "newuidmap or newgidmap rejected the range in /etc/subuid or /etc/subgid",
    )))
}

fn not_allowed(error: &io::Error) -> RuntimeError {
    RuntimeError::Host {
        what: format!("this user may not create containers: {error}"),
        hint: "run as root, or allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 (Debian), \
               kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu)"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_initial_namespace_maps_every_id() {
        assert!(is_whole("         0          0 4294967295\n"));
        assert!(!is_whole("         0       1000          1\n"));
        assert!(!is_whole("0 1000 1\n1 100000 65536\n"));
    }

    #[test]
    fn a_users_range_is_found_by_name_and_by_number() {
        let text = "root:1:2\nann:100000:65536\n1001:200000:65536\n";
        assert_eq!(range(text, Some("ann"), 1000), Some((100_000, 65536)));
        assert_eq!(range(text, None, 1001), Some((200_000, 65536)));
        assert_eq!(range(text, Some("bob"), 1002), None);
        assert_eq!(range("ann\nann:x:y\n", Some("ann"), 1), None);
    }
}
