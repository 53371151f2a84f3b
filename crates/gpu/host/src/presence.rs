//! Whether a machine has a GPU and which: cheap questions that need no probe of the whole stack.

use std::path::{Path, PathBuf};

/// Device nodes of a GPU that a process may open: NVIDIA's first, and that of WSL2.
const GPU_NODES: [&str; 2] = ["dev/nvidia0", "dev/dxg"];

/// Files that only a root with a driver or device nodes has.
const DRIVER_FILES: [&str; 3] = ["proc/driver/nvidia", "dev/nvidiactl", "dev/dxg"];

/// Whether this machine has a GPU that a process may open.
pub fn has_gpu() -> bool {
    GPU_NODES.iter().any(|node| Path::new("/").join(node).exists())
}

/// Whether a root directory has the driver's kernel files or device nodes.
pub fn has_driver_files(root: &Path) -> bool {
    DRIVER_FILES.iter().any(|file| root.join(file).exists())
}

/// The name of the first GPU below a root directory, as the kernel module reports it.
pub fn first_gpu_name(root: &Path) -> Option<String> {
    let entries = std::fs::read_dir(root.join("proc/driver/nvidia/gpus")).ok()?;
    let mut gpus: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    gpus.sort();
    let text = std::fs::read_to_string(gpus.first()?.join("information")).ok()?;
    let model = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
    Some(model.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_gpu_is_named_by_the_kernel_module() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(first_gpu_name(root.path()), None);
        assert!(!has_driver_files(root.path()));
        for (bus, model) in [("0000:0b:00.0", "Tesla T4"), ("0000:0a:00.0", "NVIDIA A100")] {
            let directory = root.path().join("proc/driver/nvidia/gpus").join(bus);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("information"), format!("Model: \t\t {model}\nIRQ: 5\n")).unwrap();
        }
        assert_eq!(first_gpu_name(root.path()).as_deref(), Some("NVIDIA A100"));
        assert!(has_driver_files(root.path()));
    }
}
