use crate::host::DeviceNode;
use crate::root::Stat;
use crate::{Files, Root};

/// The device nodes of NVIDIA's driver and of WSL2.
pub(super) fn read(root: &Root) -> Vec<DeviceNode> {
    let user = User::current(root);
    let is_ours = |name: &String| {
        matches!(name.as_str(), "nvidiactl" | "nvidia-uvm" | "nvidia-uvm-tools" | "nvidia-modeset" | "dxg")
            || name.strip_prefix("nvidia").is_some_and(|rest| rest.parse::<u32>().is_ok())
            || name.starts_with("nvidia-nvswitch")
    };
    root.names("/dev")
        .into_iter()
        .filter(is_ours)
        .filter_map(|name| {
            let path = format!("/dev/{name}");
            let stat = root.stat(&path)?;
            Some(DeviceNode {
                mode: stat.mode & 0o777,
                is_device: root.is_live().then_some(stat.is_char_device),
                usable: user.as_ref().map(|user| user.can_use(stat)),
                path,
            })
        })
        .collect()
}

/// The current user and groups.
struct User {
    id: u32,
    groups: Vec<u32>,
}

impl User {
    fn current(root: &Root) -> Option<Self> {
        let status = root.text("/proc/self/status")?;
        let numbers = |field: &str| -> Option<Vec<u32>> {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            Some(line.split_whitespace().filter_map(|word| word.parse().ok()).collect())
        };
        // The second number is the effective id.
        let id = *numbers("Uid:")?.get(1)?;
        let mut groups = numbers("Groups:").unwrap_or_default();
        groups.extend(numbers("Gid:").unwrap_or_default().get(1));
        Some(Self { id, groups })
    }

    fn can_use(&self, stat: Stat) -> bool {
        let bits = if stat.uid == self.id {
            stat.mode >> 6
        } else if self.groups.contains(&stat.gid) {
            stat.mode >> 3
        } else {
            stat.mode
        };
        self.id == 0 || bits & 0o6 == 0o6
    }
}
