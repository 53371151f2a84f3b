//! Which Python environment is active.

use cudock_host::Verdict;
use cudock_testkit::host_tree::{self as tree, HostTree};

use crate::support::{diagnose, read};

#[test]
fn a_conda_environment_is_read() {
    let tree = tree::healthy()
        .program("/opt/conda/envs/train/bin/python3")
        .environment(&[
            ("PATH", "/opt/conda/envs/train/bin:/usr/bin"),
            ("CONDA_PREFIX", "/opt/conda/envs/train"),
        ])
        .file(
            "/opt/conda/envs/train/conda-meta/pytorch-2.5.1-py3.12_cuda12.4_cudnn9.1.0_0.json",
            r#"{"version": "2.5.1"}"#,
        )
        .file(
            "/opt/conda/envs/train/lib/python3.12/site-packages/torch/version.py",
            "__version__ = '2.5.1'\ncuda = '12.4'\nhip = None\n",
        );
    let host = read(&tree);
    let python = host.python.as_ref().unwrap();
    assert_eq!((python.prefix.as_str(), python.found_by.as_str()), ("/opt/conda/envs/train", "CONDA_PREFIX"));
    assert_eq!(python.get("torch").unwrap().version.to_string(), "2.5.1");
    assert_eq!(diagnose(&tree).frameworks[0].verdict, Verdict::Works);
}

#[test]
fn an_environment_that_is_not_on_the_path_is_not_active() {
    let tree = tree::healthy()
        .program("/usr/bin/python3")
        .environment(&[("PATH", "/usr/bin"), ("VIRTUAL_ENV", "/opt/venv")]);
    assert_eq!(read(&tree).python.unwrap().prefix, "/usr");
}

#[test]
fn the_version_selected_by_pyenv_is_read() {
    let tree = HostTree::new()
        .program("/root/.pyenv/shims/python3")
        .file("/root/.pyenv/version", "3.12.1\n")
        .program("/root/.pyenv/versions/3.12.1/bin/python3")
        .environment(&[("PATH", "/root/.pyenv/shims:/usr/bin")]);
    assert_eq!(read(&tree).python.unwrap().prefix, "/root/.pyenv/versions/3.12.1");
}
