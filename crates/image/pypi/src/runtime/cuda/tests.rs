use std::path::Path;

use super::*;
use crate::runtime::context::tests::{machine, put};
use crate::runtime::{FoundBy, Package};

const SITE: &str = "venv/lib/python3.12/site-packages";
const ALL: [&str; 6] = [
    "libcublas.so.13",
    "libcublasLt.so.13",
    "libcudart.so.13",
    "libcudnn.so.9",
    "libcufft.so.12",
    "libcurand.so.10",
];

fn libraries(directory: &Path, version: &str, variables: &[(&str, &str)]) -> (CudaLibraries, RuntimeLibrary) {
    let found = RuntimeLibrary {
        package: Package::OnnxruntimeGpu,
        version: Some(version.to_owned()),
        library: PathBuf::from("/ort/libonnxruntime.so"),
        providers: vec!["cuda".to_owned(), "tensorrt".to_owned()],
        found_by: FoundBy::Cache,
        usable: true,
    };
    (cuda_libraries(&machine(directory, variables), &found, &Facts::embedded()), found)
}

fn missing(libraries: &CudaLibraries) -> Vec<&str> {
    libraries.missing.iter().map(|library| library.soname.as_str()).collect()
}

#[test]
fn missing_libraries_are_reported_with_a_command_to_install_them() {
    let directory = tempfile::tempdir().unwrap();
    let (libraries, found) = libraries(directory.path(), "1.31.1", &[]);
    assert_eq!(missing(&libraries), ALL);
    assert!(libraries.directories.is_empty() && !libraries.driver);
    assert_eq!(
        libraries.hint(&found).unwrap(),
        "pip install 'nvidia-cublas~=13.0' 'nvidia-cuda-runtime~=13.0' 'nvidia-cudnn-cu13~=9.0' \
         'nvidia-cufft~=12.0' 'nvidia-curand~=10.0'"
    );
}

#[test]
fn wheels_of_an_environment_are_found_and_their_directories_listed_once() {
    let directory = tempfile::tempdir().unwrap();
    let of_cuda: Vec<&str> = ALL.into_iter().filter(|name| *name != "libcudnn.so.9").collect();
    put(directory.path(), &format!("{SITE}/nvidia/cu13/lib"), &of_cuda);
    put(directory.path(), &format!("{SITE}/nvidia/cudnn/lib"), &["libcudnn.so.9"]);
    put(directory.path(), &format!("{SITE}/tensorrt_libs"), &["libnvinfer.so.10"]);
    // A toolkit of the system does not win over the environment's own.
    put(directory.path(), "usr/local/cuda-13.1/lib64", &ALL);
    put(directory.path(), "usr/lib/x86_64-linux-gnu", &["libcuda.so.1"]);
    let (libraries, found) = libraries(directory.path(), "1.31.1", &[("VIRTUAL_ENV", "/venv")]);
    let directories: Vec<String> =
        libraries.directories.iter().map(|path| path.display().to_string()).collect();
    assert_eq!(
        directories,
        ["nvidia/cu13/lib", "nvidia/cudnn/lib", "tensorrt_libs"].map(|below| format!("/{SITE}/{below}"))
    );
    assert!(libraries.missing.is_empty() && libraries.driver);
    assert_eq!(libraries.hint(&found), None);
}

#[test]
fn the_default_toolkit_comes_first_and_then_the_newest() {
    let directory = tempfile::tempdir().unwrap();
    put(directory.path(), "usr/local/cuda-12.9/lib64", &["libcudart.so.12"]);
    put(directory.path(), "usr/local/cuda-13.0/lib64", &["libcudart.so.13", "libcurand.so.10"]);
    put(directory.path(), "usr/local/cuda-13.10/targets/x86_64-linux/lib", &["libcudart.so.13"]);
    let (seen, _) = libraries(directory.path(), "1.31.1", &[]);
    let expected = ["/usr/local/cuda-13.10/targets/x86_64-linux/lib", "/usr/local/cuda-13.0/lib64"];
    assert_eq!(seen.directories, expected.map(PathBuf::from));
    put(directory.path(), "usr/local/cuda/lib64", &["libcudart.so.13"]);
    let (seen, _) = libraries(directory.path(), "1.31.1", &[]);
    assert_eq!(seen.directories.first(), Some(&PathBuf::from("/usr/local/cuda/lib64")));
}

#[test]
fn what_the_loader_finds_by_default_is_not_missing() {
    let directory = tempfile::tempdir().unwrap();
    put(directory.path(), "usr/lib/x86_64-linux-gnu", &["libcudnn.so.9"]);
    put(directory.path(), "opt/cuda", &["libcublas.so.13", "libcublasLt.so.13"]);
    put(directory.path(), "etc", &[]);
    let (libraries, _) = libraries(directory.path(), "1.31.1", &[("LD_LIBRARY_PATH", "/opt/cuda")]);
    assert_eq!(missing(&libraries), ["libcudart.so.13", "libcufft.so.12", "libcurand.so.10"]);
    assert!(libraries.directories.is_empty());
}

#[test]
fn a_build_for_another_cuda_has_its_own_needs() {
    let directory = tempfile::tempdir().unwrap();
    let (libraries, found) = libraries(directory.path(), "1.20.2", &[]);
    assert!(missing(&libraries).contains(&"libcudart.so.12"), "{libraries:?}");
    assert!(missing(&libraries).contains(&"libcudnn.so.9"));
    assert_eq!(libraries.hint(&found).unwrap(), "pip install 'onnxruntime-gpu[cuda,cudnn]==1.20.2'");
}
