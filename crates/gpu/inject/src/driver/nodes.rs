//! Device nodes, by `stat`: the majors of some are assigned when modules are loaded.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use super::HostNode;
use super::tree::DriverTree;

/// Directories of `/dev` with nodes that can be requested.
const DIRECTORIES: [&str; 5] =
    ["/dev", "/dev/dri", "/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels", "/dev/infiniband"];

/// Nodes by path, and paths that should be nodes but are not.
pub(super) fn read(tree: &DriverTree) -> (BTreeMap<String, HostNode>, Vec<String>) {
    let mut nodes = BTreeMap::new();
    let mut others = Vec::new();
    for directory in DIRECTORIES {
        for name in tree.names(directory).iter().filter(|name| is_ours(directory, name)) {
            let path = format!("{directory}/{name}");
            match node(tree, &path) {
                Some(node) => {
                    nodes.insert(path, node);
                }
                None if tree.metadata(&path).is_some_and(|found| found.is_dir()) => {}
                None => others.push(path),
            }
        }
    }
    (nodes, others)
}

pub(super) fn node(tree: &DriverTree, path: &str) -> Option<HostNode> {
    let metadata = tree.metadata(path)?;
    metadata.file_type().is_char_device().then(|| HostNode {
        host: tree.host(path).unwrap_or_default(),
        major: rustix::fs::major(metadata.rdev()),
        minor: rustix::fs::minor(metadata.rdev()),
        mode: metadata.mode() & 0o777,
        gid: metadata.gid(),
    })
}

fn is_ours(directory: &str, name: &str) -> bool {
    match directory {
        "/dev" => name.starts_with("nvidia") || matches!(name, "gdrdrv" | "dxg"),
        "/dev/dri" => name.starts_with("card") || name.starts_with("renderD"),
        "/dev/infiniband" => name.starts_with("uverbs") || name == "rdma_cm",
        "/dev/nvidia-caps" => name.starts_with("nvidia-cap"),
        _ => name.starts_with("channel"),
    }
}
