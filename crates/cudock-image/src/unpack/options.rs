//! How layers are to lie on disk: it depends on who unpacks them, and on how they are mounted.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::layer::Limits;

/// How a store keeps layers.
#[derive(Debug, Clone, Copy)]
pub struct StoreOptions {
    /// How overlayfs is told that a folder hides what lies below.
    pub whiteouts: WhiteoutForm,
    /// Whose files become.
    pub ownership: Ownership,
    /// Whether device nodes are made. Without it they are left out with a note: a container gets its `/dev` from
    /// whoever starts it, and a node elsewhere serves nobody but an attacker.
    pub devices: bool,
    /// What a layer may cost.
    pub limits: Limits,
}

/// How overlayfs is told that a folder hides what lies below. Removed names are character devices 0:0 in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhiteoutForm {
    /// `trusted.overlay.opaque`: for the machine's own root.
    Trusted,
    /// `user.overlay.opaque`, for mounts with the option `userxattr`: within a user namespace.
    User,
}

/// Whose files become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// Their owner's in the image.
    Keep,
    /// Ours, all of them: for users who can give nothing away.
    Ours,
}

impl WhiteoutForm {
    pub(super) const fn opaque(self) -> &'static str {
        match self {
            WhiteoutForm::Trusted => "trusted.overlay.opaque",
            WhiteoutForm::User => "user.overlay.opaque",
        }
    }
}

impl StoreOptions {
    /// What fits this process: root of the machine, root of a user namespace, or a user.
    pub fn of_process() -> Self {
        let uid = fs::metadata("/proc/self").map_or(u32::MAX, |meta| meta.uid());
        Self::of(uid, &fs::read_to_string("/proc/self/uid_map").unwrap_or_default())
    }

    fn of(uid: u32, uid_map: &str) -> Self {
        let mapped: Vec<Vec<u64>> = uid_map
            .lines()
            .map(|line| line.split_whitespace().filter_map(|number| number.parse().ok()).collect())
            .collect();
        let is_machine = mapped == [[0, 0, u64::from(u32::MAX)]];
        let count: u64 = mapped.iter().filter_map(|line| line.get(2)).sum();
        let may_give = uid == 0 && count > 1;
        Self {
            whiteouts: if uid == 0 && is_machine { WhiteoutForm::Trusted } else { WhiteoutForm::User },
            ownership: if may_give { Ownership::Keep } else { Ownership::Ours },
            devices: false,
            limits: Limits::default(),
        }
    }

    /// The name of the folder for layers kept this way: those kept otherwise differ on disk.
    pub(super) fn flavour(&self) -> String {
        let mut name = "layers".to_owned();
        if self.whiteouts == WhiteoutForm::User {
            name.push_str("-user");
        }
        if self.ownership == Ownership::Ours {
            name.push_str("-ours");
        }
        if self.devices {
            name.push_str("-devices");
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_unpacks_decides_about_owners_and_whiteouts() {
        let machine = "         0          0 4294967295\n";
        let namespace = "0 1000 1\n1 100000 65536\n";
        let alone = "0 1000 1\n";
        let cases = [
            (0, machine, WhiteoutForm::Trusted, Ownership::Keep, "layers"),
            (1000, machine, WhiteoutForm::User, Ownership::Ours, "layers-user-ours"),
            (0, namespace, WhiteoutForm::User, Ownership::Keep, "layers-user"),
            (0, alone, WhiteoutForm::User, Ownership::Ours, "layers-user-ours"),
            (0, "", WhiteoutForm::User, Ownership::Ours, "layers-user-ours"),
        ];
        for (uid, map, whiteouts, ownership, flavour) in cases {
            let options = StoreOptions::of(uid, map);
            assert_eq!((options.whiteouts, options.ownership), (whiteouts, ownership), "{uid} {map}");
            assert_eq!(options.flavour(), flavour);
        }
    }
}
