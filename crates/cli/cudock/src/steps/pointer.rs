//! Suggests the verb for a file that another verb cannot read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A hint with the command for a file: a container group, or a script or template that names Azure resources.
pub(crate) fn other_verb(path: &Path) -> String {
    let mut start = Vec::new();
    // A file that cannot be read gets the general hint.
    let _ = File::open(path).and_then(|file| file.take(64 << 10).read_to_end(&mut start));
    let text = String::from_utf8_lossy(&start);
    let shown = path.display();
    if cudock_group::is_group(&text) {
        let image = cudock_group::first_image(&text).unwrap_or("IMAGE");
        return format!(
            "this is a container group: `cudock up -f {shown}` runs it, `cudock check {image}` checks its image"
        );
    }
    format!("`cudock migrate {shown}` reads scripts and templates that choose Azure sizes and images")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_points_to_up_and_other_files_to_migrate() {
        let directory = tempfile::tempdir().unwrap();
        let cases = [
            (
                "group.yaml",
                "name: a\nproperties:\n  containers:\n  - name: x\n    properties:\n      image: team/app:1\n",
                "up -f",
            ),
            ("job.yaml", "resources:\n  instance_type: Standard_NC6s_v3\n", "migrate"),
            ("deploy.py", "vm_size = 'Standard_NC6s_v3'\n", "migrate"),
        ];
        for (name, text, verb) in cases {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            assert!(other_verb(&path).contains(&format!("cudock {verb} ")), "{name}");
        }
        assert!(other_verb(&directory.path().join("group.yaml")).contains("cudock check team/app:1"));
    }
}
