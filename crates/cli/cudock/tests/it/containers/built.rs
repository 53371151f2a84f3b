//! A compiled CUDA program: the image that is built for it, and the program in a container.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use cudock_base::Environment;
use cudock_build::{BuildReport, BuildRequest, build};
use cudock_facts::Facts;
use cudock_http::NoProgress;
use cudock_image::write::Destination;
use cudock_lock::LockFile;
use cudock_project::Project;
use cudock_testkit::packages::LockedProject;
use cudock_testkit::tar::Tar;
use serde_json::Value;

use super::machine::machine;
use crate::support::{code, json, run, shown};

const LIBRARIES: &str = "./usr/lib/x86_64-linux-gnu";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gpu/fatbin/tests")
}

/// A shared library with this name, compiled from C, and with the versions of its symbols that NVIDIA's has.
fn library(cc: &Path, directory: &Path, source: &Path, soname: &str) -> Vec<u8> {
    let versions = directory.join("versions");
    std::fs::write(&versions, format!("{soname} {{ *; }};\n")).unwrap();
    let path = directory.join(soname);
    let mut command = Command::new(cc);
    command.args(["-shared", "-fPIC", "-O1", &format!("-Wl,-soname,{soname}"), "-o"]).arg(&path);
    command.arg(format!("-Wl,--version-script={}", versions.display())).arg(source);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", shown(&output));
    std::fs::read(path).unwrap()
}

/// A file that the compiler of this machine links against.
fn of_this_machine(cc: &Path, name: &str) -> Vec<u8> {
    let output = Command::new(cc).arg(format!("-print-file-name={name}")).output().unwrap();
    std::fs::read(String::from_utf8(output.stdout).unwrap().trim()).unwrap()
}

/// The data of this machine's C library as a Debian package has it.
fn libc(cc: &Path) -> Vec<u8> {
    let ours = |tar: Tar, name: &str| tar.program(&format!("{LIBRARIES}/{name}"), of_this_machine(cc, name));
    let loader = std::fs::read("/lib64/ld-linux-x86-64.so.2").unwrap();
    let libc = ["libc.so.6", "libm.so.6"].into_iter().fold(Tar::default(), ours);
    libc.program("./usr/lib64/ld-linux-x86-64.so.2", loader).end()
}

/// The project of a program that nvcc made, locked with this machine's C library and a stand-in for CUDA's.
fn project(cc: &Path, directory: &Path) -> LockedProject {
    let ours = |tar: Tar, name: &str| tar.program(&format!("{LIBRARIES}/{name}"), of_this_machine(cc, name));
    let cudart = library(cc, directory, &fixtures().join("fake_cudart.c"), "libcudart.so.13");
    let empty = directory.join("empty.c");
    std::fs::write(&empty, "int nothing_links_to_this;\n").unwrap();
    let unused = library(cc, directory, &empty, "libcufft.so.12");
    let target = "cuda = \"13.4\"\ngpus = [\"T4\", \"H200\"]";
    let project = LockedProject::new("program = \"program\"\ntargets = [\"T4\", \"H200\"]\n", target)
        .deb("libc6", "2.41-12", &libc(cc))
        .deb("libgcc-s1", "14.2.0-19", &ours(Tar::default(), "libgcc_s.so.1").end())
        .deb("libstdc++6", "14.2.0-19", &ours(Tar::default(), "libstdc++.so.6").end())
        .wheel("nvidia-cuda-runtime", "13.4.92", "cuda", &[("nvidia/cu13/lib/libcudart.so.13", &cudart)])
        .wheel("nvidia-cufft", "12.4.0.43", "cuda", &[("nvidia/cu13/lib/libcufft.so.12", &unused)]);
    project.write("program", std::fs::read(fixtures().join("fixtures/program")).unwrap());
    project
}

/// Builds the image for some GPUs into a layout.
fn build_for(project: &LockedProject, gpus: &[&str], layout: &Path) -> BuildReport {
    let lock = LockFile::parse(Path::new("cudock.lock"), &project.lock()).unwrap();
    let opened = Project::open(&project.path()).unwrap();
    let environment = Environment::of(project.beside(""), [("CUDOCK_CACHE", project.cache())]);
    let targets: Vec<String> = gpus.iter().map(|gpu| (*gpu).to_owned()).collect();
    let destination = Destination::Layout { directory: layout.to_owned(), name: None };
    let request = BuildRequest {
        project: &opened,
        lock: &lock,
        facts: &Facts::embedded(),
        environment: &environment,
        targets: &targets,
        destination: Some(&destination),
        compression: None,
        program: PathBuf::new(),
        explain: true,
        today: "2026-11-15".parse().unwrap(),
        progress: Arc::new(NoProgress),
    };
    build(&request).unwrap().report
}

/// A document of a layout.
fn document(layout: &Path, descriptor: &Value) -> Value {
    let path = layout.join("blobs").join(descriptor["digest"].as_str().unwrap().replace(':', "/"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_compiled_program_gets_its_libraries_and_the_code_of_its_card_and_starts() {
    let Some(machine) = machine() else { return };
    if cfg!(not(target_arch = "x86_64")) {
        cudock_testkit::missing("x86_64", "the program is compiled for x86_64");
        return;
    }
    let Some(cc) = cudock_testkit::require_program("cc") else { return };
    let project = project(&cc, machine.path());
    for (gpu, other, architecture) in [("T4", "H200", "sm_75"), ("H200", "T4", "sm_90")] {
        let layout = machine.path().join(architecture);
        let report = build_for(&project, &[gpu], &layout);
        assert!(report.warnings.is_empty(), "{:?}", report.warnings);
        assert_eq!((report.images.len(), report.images[0].gpu.as_str()), (1, architecture));
        let index: Value =
            serde_json::from_slice(&std::fs::read(layout.join("index.json")).unwrap()).unwrap();
        let manifest = document(&layout, &index["manifests"][0]);
        let config = &document(&layout, &manifest["config"])["config"];
        let label = |name: &str| config["Labels"][name].as_str().unwrap_or_default().to_owned();
        assert_eq!(label("io.cudock.gpu"), architecture);
        assert_eq!(
            (label("io.cudock.cuda"), label("io.cudock.driver.minimum")),
            ("13.4".into(), "580".into())
        );
        assert_eq!(config["Entrypoint"], serde_json::json!(["/usr/local/bin/program"]));
        assert!(config["Env"].to_string().contains("NVIDIA_REQUIRE_CUDA=cuda>=13.0"), "{config}");
        // Only the closure of the program is there.
        let tree = serde_json::to_string(&report.images[0].sizes).unwrap();
        let omitted = serde_json::to_string(&report.images[0].omitted).unwrap();
        assert!(tree.contains("nvidia-cuda-runtime") && !tree.contains("nvidia-cufft"), "{tree}");
        assert!(omitted.contains("libcufft.so.12"), "{omitted}");
        // The program has the machine code of its card, and of no other.
        let image = format!("oci:{architecture}");
        let check = |gpu: &str| {
            let output = machine.call(&["check", &image, "--gpu", gpu, "--format", "json"]);
            json(&output)["results"][0]["verdict"].as_str().unwrap().to_owned()
        };
        assert_eq!((check(gpu).as_str(), check(other).as_str()), ("works", "fails"), "{image}");
        assert_eq!(machine.good(&["run", "--rm", "--network", "none", &image, "--version"]), "program 1.0\n");
        let output = machine.call(&["run", "--rm", "--network", "none", &image]);
        assert_eq!(code(&output), 1, "{}", shown(&output));
        assert!(shown(&output).contains("no CUDA-capable device"), "{}", shown(&output));
        // The report of check is attached too, and is the same in another layout.
        let attached = &report.images[0].documents;
        assert_eq!(attached.len(), 4, "{attached:?}");
        let again = build_for(&project, &[gpu], &machine.path().join("again").join(architecture));
        assert_eq!(&again.images[0].documents, attached);
    }
    let both = build_for(&project, &["T4", "H200"], &machine.path().join("both"));
    let gpus: Vec<&str> = both.images.iter().map(|image| image.gpu.as_str()).collect();
    assert_eq!(gpus, ["sm_75", "sm_90"]);
}

#[test]
fn cudock_in_an_image_is_no_evidence_of_what_the_rest_of_it_does() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    for name in ["etc", "usr/bin"] {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    std::fs::hard_link(env!("CARGO_BIN_EXE_cudock"), root.join("usr/bin/cudock"))
        .or_else(|_| std::fs::copy(env!("CARGO_BIN_EXE_cudock"), root.join("usr/bin/cudock")).map(drop))
        .unwrap();
    for gpu in ["T4", "H200"] {
        let output = run(&["check", &format!("rootfs:{}", root.display()), "--gpu", gpu, "--format", "json"]);
        let verdict = &json(&output)["results"][0]["verdict"];
        assert_eq!((code(&output), verdict), (1, &Value::from("cpu")), "{}", shown(&output));
    }
}

#[test]
fn an_image_that_does_not_use_the_gpu_is_neither_written_nor_labeled_for_it() {
    let Some(cc) = cudock_testkit::require_program("cc") else { return };
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("main.c");
    let own = ".version 3.2\\n.target sm_30\\n.address_size 64\\n.visible .entry cudock_multiply_add(";
    for (kernel, gpu) in [(own.to_owned(), ""), (own.replace("cudock_multiply_add", "scale"), "sm_75")] {
        let text =
            format!("const char *const ptx = \"{kernel}\";\nconst char *const driver = \"libcuda.so.1\";\n");
        std::fs::write(&source, text + "int main(void) { return ptx[0] == driver[0]; }\n").unwrap();
        let program = directory.path().join("program");
        let output = Command::new(&cc).arg("-o").args([&program, &source]).output().unwrap();
        assert!(output.status.success(), "{}", shown(&output));
        let image = "program = \"program\"\ntargets = [\"T4\"]\n";
        let project =
            LockedProject::new(image, "cuda = \"13.4\"\ngpus = [\"T4\"]").deb("libc6", "2.41-12", &libc(&cc));
        project.write("program", std::fs::read(&program).unwrap());
        let layout = project.beside("layout");
        let report = build_for(&project, &["T4"], &layout);
        assert_eq!((report.images[0].gpu.as_str(), report.runs()), (gpu, !gpu.is_empty()), "{report:?}");
        assert_eq!(layout.join("index.json").exists(), report.runs());
    }
}
