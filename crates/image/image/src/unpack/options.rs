//! Options of a layer store, which depend on privileges and on how layers are mounted.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::layer::LayerLimits;

/// How a store keeps layers on disk.
#[derive(Debug, Clone, Copy)]
pub struct StoreOptions {
    pub whiteouts: WhiteoutForm,
    pub ownership: Ownership,
    pub limits: LayerLimits,
}

/// How opaque directories are marked. Removed names are character devices 0:0 in both forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhiteoutForm {
    /// `trusted.overlay.opaque`, for root on the host.
    Trusted,
    /// `user.overlay.opaque`, for mounts with the option `userxattr` in a user namespace.
    User,
}

/// The owner of unpacked files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// The owner in the image.
    Keep,
    /// The current user, who has no permission to change owners.
    CurrentUser,
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
    /// The options for this process: root on the host, root in a user namespace, or a regular user.
    pub fn for_process() -> Self {
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
            ownership: if may_give { Ownership::Keep } else { Ownership::CurrentUser },
            limits: LayerLimits::default(),
        }
    }

    /// The name of the directory for layers kept this way: different options give different files.
    pub(super) fn flavor(&self) -> String {
        let user = if self.whiteouts == WhiteoutForm::User { "-user" } else { "" };
        let ours = if self.ownership == Ownership::CurrentUser { "-ours" } else { "" };
        format!("layers{user}{ours}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn privileges_decide_about_owners_and_whiteouts() {
        let machine = "         0          0 4294967295\n";
        let namespace = "0 1000 1\n1 100000 65536\n";
        let alone = "0 1000 1\n";
        let cases = [
            (0, machine, WhiteoutForm::Trusted, Ownership::Keep, "layers"),
            (1000, machine, WhiteoutForm::User, Ownership::CurrentUser, "layers-user-ours"),
            (0, namespace, WhiteoutForm::User, Ownership::Keep, "layers-user"),
            (0, alone, WhiteoutForm::User, Ownership::CurrentUser, "layers-user-ours"),
            (0, "", WhiteoutForm::User, Ownership::CurrentUser, "layers-user-ours"),
        ];
        for (uid, map, whiteouts, ownership, flavor) in cases {
            let options = StoreOptions::of(uid, map);
            assert_eq!((options.whiteouts, options.ownership), (whiteouts, ownership), "{uid} {map}");
            assert_eq!(options.flavor(), flavor);
        }
    }
}
