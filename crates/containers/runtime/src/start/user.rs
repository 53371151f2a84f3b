//! Looks up `--user` in the image's `/etc/passwd` and `/etc/group`.

use serde::{Deserialize, Serialize};

use crate::error::RuntimeError;
use crate::files::in_root::InRoot;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    pub(crate) home: String,
}

impl Identity {
    pub(crate) fn add_groups(&mut self, groups: &[u32]) {
        self.groups.extend(groups);
        self.groups.sort_unstable();
        self.groups.dedup();
    }
}

/// The largest id. The kernel takes the largest number of all as "unchanged", which would be root.
const MAX_ID: u32 = i32::MAX.unsigned_abs();

/// A line of `/etc/passwd`.
struct UserEntry<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
    home: &'a str,
}

/// A line of `/etc/group`.
struct GroupEntry<'a> {
    name: &'a str,
    gid: u32,
    members: Vec<&'a str>,
}

/// Looks up a user by name or number, with an optional group after a colon, and supplementary groups.
pub(crate) fn identify(root: &InRoot, user: &str, groups: &[String]) -> Result<Identity, RuntimeError> {
    let passwd = root.text("/etc/passwd").unwrap_or_default();
    let group = root.text("/etc/group").unwrap_or_default();
    resolve(&passwd, &group, user, groups)
}

fn resolve(passwd: &str, group: &str, user: &str, further: &[String]) -> Result<Identity, RuntimeError> {
    let (user, group_name) = match user.split_once(':') {
        Some((user, group)) => (user, Some(group).filter(|group| !group.is_empty())),
        None => (user, None),
    };
    let user = if user.is_empty() { "0" } else { user };
    let users: Vec<UserEntry<'_>> = passwd.lines().filter_map(user_line).collect();
    let all: Vec<GroupEntry<'_>> = group.lines().filter_map(group_line).collect();

    // As in docker, names take precedence: a user may be called 1000.
    let number = user.parse::<u32>().ok().filter(|id| *id <= MAX_ID);
    let known = users
        .iter()
        .find(|known| known.name == user)
        .or_else(|| users.iter().find(|known| Some(known.uid) == number));
    let (uid, gid, home) = match (known, number) {
        (Some(known), _) => (known.uid, known.gid, known.home),
        (None, Some(uid)) => (uid, 0, "/"),
        (None, None) => {
            return Err(RuntimeError::User(format!("the image has no user `{user}` in /etc/passwd")));
        }
    };
    let mut identity = Identity { uid, gid, groups: Vec::new(), home: home.to_owned() };
    if let Some(asked) = group_name {
        identity.gid = group_id(&all, asked)?;
    } else {
        let member = |group: &&GroupEntry<'_>| known.is_some_and(|user| group.members.contains(&user.name));
        identity.groups = all.iter().filter(member).map(|group| group.gid).collect();
    }
    let further: Result<Vec<u32>, _> = further.iter().map(|asked| group_id(&all, asked)).collect();
    identity.add_groups(&further?);
    Ok(identity)
}

fn group_id(all: &[GroupEntry<'_>], asked: &str) -> Result<u32, RuntimeError> {
    let known = all.iter().find(|group| group.name == asked).map(|group| group.gid);
    known
        .or_else(|| asked.parse().ok().filter(|id| *id <= MAX_ID))
        .ok_or_else(|| RuntimeError::User(format!("the image has no group `{asked}` in /etc/group")))
}

fn user_line(line: &str) -> Option<UserEntry<'_>> {
    let mut fields = line.split(':');
    let name = fields.next()?;
    let uid = fields.nth(1)?.parse().ok().filter(|id| *id <= MAX_ID)?;
    let gid = fields.next()?.parse().ok().filter(|id| *id <= MAX_ID)?;
    let home = fields.nth(1).filter(|home| !home.is_empty()).unwrap_or("/");
    Some(UserEntry { name, uid, gid, home })
}

fn group_line(line: &str) -> Option<GroupEntry<'_>> {
    let mut fields = line.split(':');
    let name = fields.next()?;
    let gid = fields.nth(1)?.parse().ok().filter(|id| *id <= MAX_ID)?;
    let members = fields.next().unwrap_or_default().split(',').filter(|name| !name.is_empty()).collect();
    Some(GroupEntry { name, gid, members })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/sh\nann:x:1000:100:Ann:/home/ann:/bin/sh\n7:x:8:9::/seven:\n";
    const GROUP: &str = "root:x:0:\nusers:x:100:\nvideo:x:44:ann,root\nrender:x:105:ann\n";

    fn identity(uid: u32, gid: u32, groups: &[u32], home: &str) -> Identity {
        Identity { uid, gid, groups: groups.to_vec(), home: home.to_owned() }
    }

    #[test]
    fn users_and_groups_are_looked_up_by_name_and_by_number() {
        let ann = || identity(1000, 100, &[44, 105], "/home/ann");
        for (user, expected) in [
            ("", identity(0, 0, &[44], "/root")),
            ("ann", ann()),
            ("1000", ann()),
            // A name made of digits comes before the number.
            ("7", identity(8, 9, &[], "/seven")),
            // A number need not exist.
            ("4242", identity(4242, 0, &[], "/")),
            // A group after the colon replaces the others.
            ("ann:video", identity(1000, 44, &[], "/home/ann")),
            ("ann:55", identity(1000, 55, &[], "/home/ann")),
        ] {
            assert_eq!(resolve(PASSWD, GROUP, user, &[]).unwrap(), expected, "{user}");
        }
        assert_eq!(resolve(PASSWD, GROUP, "0", &["render".into(), "7".into()]).unwrap().groups, [7, 44, 105]);
        assert_eq!(resolve("\0\n::::\nx:y:z\n", "", "0", &[]).unwrap().home, "/", "malformed lines");
    }

    #[test]
    fn an_id_that_means_unchanged_to_the_kernel_is_rejected() {
        assert!(resolve(PASSWD, GROUP, "4294967295", &[]).is_err());
        assert!(resolve(PASSWD, GROUP, "0:4294967295", &[]).is_err());
        assert!(resolve("x:x:4294967295:0::/:", "", "x", &[]).is_err());
    }

    #[test]
    fn an_unknown_user_is_an_error_with_the_name() {
        let error = resolve(PASSWD, GROUP, "bob", &[]).unwrap_err().to_string();
        assert_eq!(error, "the image has no user `bob` in /etc/passwd");
        let error = resolve(PASSWD, GROUP, "ann:nobody", &[]).unwrap_err().to_string();
        assert_eq!(error, "the image has no group `nobody` in /etc/group");
    }
}
