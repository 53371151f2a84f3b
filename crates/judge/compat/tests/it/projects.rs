//! Project directories as tutorials and repositories have them, each with what it does on six targets.
//!
//! The directories and the expectations are in `projects.toml`, with a reason for each. A verdict that is not the expected
//! one fails the test; so does a corpus that shrinks.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cudock_compat::{Context, Judgement, Target, gather, judge, subject};
use cudock_facts::Facts;
use serde::Deserialize;

#[derive(Deserialize)]
struct Corpus {
    project: Vec<Project>,
}

#[derive(Deserialize)]
struct Project {
    name: String,
    expect: Vec<Expectation>,
    files: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Expectation {
    targets: String,
    verdict: String,
    reason: String,
}

/// Six targets: old and new, datacenter and GeForce, with drivers of three branches.
const TARGETS: [(&str, &str, &str); 6] = [
    ("v100", "V100", "550.54.15"),
    ("t4", "T4", "535.161.08"),
    ("a100", "A100", "580.95.05"),
    ("h100", "H100", "550.54.15"),
    ("r4090", "RTX 4090", "550.54.14"),
    ("r5090", "RTX 5090", "580.95.05"),
];

fn corpus() -> Vec<Project> {
    let text = include_str!("../projects.toml");
    toml::from_str::<Corpus>(text).expect("projects.toml").project
}

fn write(directory: &Path, files: &BTreeMap<String, String>) {
    for (path, text) in files {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn judged(facts: &Facts, path: &Path, target: &Target) -> Judgement {
    let environment = BTreeMap::new();
    let context = Context { facts, environment: &environment, on_this_machine: false };
    let name = path.display().to_string();
    let evidence = gather(&subject(&name).unwrap(), &name, &context).unwrap();
    judge(&evidence, target, facts)
}

fn verdict(judgement: &Judgement) -> String {
    format!("{:?}", judgement.verdict).to_lowercase()
}

#[test]
fn project_directories_get_the_answers_that_documented_facts_give() {
    let facts = Facts::embedded();
    let mut wrong = Vec::new();
    let mut cases = 0;
    for project in corpus() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), &project.files);
        for (key, card, driver) in TARGETS {
            let target = Target::of_gpu(&facts, card, Some(driver.parse().unwrap())).unwrap();
            let expected = project
                .expect
                .iter()
                .find(|expected| expected.targets.split(' ').any(|target| target == key))
                .unwrap_or_else(|| panic!("{}: nothing is expected on {key}", project.name));
            let judgement = judged(&facts, directory.path(), &target);
            let found = verdict(&judgement);
            cases += 1;
            if expected.verdict != found {
                wrong.push(format!(
                    "{} on {key}: {found} ({}), expected {} ({})",
                    project.name, judgement.reason, expected.verdict, expected.reason
                ));
            }
        }
    }
    assert!(cases >= 60 * TARGETS.len(), "only {cases} cases");
    assert!(wrong.is_empty(), "{} of {cases} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_directory_and_its_dockerfile_get_the_same_answer() {
    let facts = Facts::embedded();
    for project in corpus().iter().filter(|project| project.files.contains_key("Dockerfile")) {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), &project.files);
        for (_, card, driver) in TARGETS {
            let target = Target::of_gpu(&facts, card, Some(driver.parse().unwrap())).unwrap();
            let of_directory = judged(&facts, directory.path(), &target);
            let of_file = judged(&facts, &directory.path().join("Dockerfile"), &target);
            assert_eq!(verdict(&of_directory), verdict(&of_file), "{} on {card}", project.name);
        }
    }
}

/// The findings of a Dockerfile of one line on an A100, as code, message and fix.
fn findings(text: &str) -> Vec<(String, String, String)> {
    let facts = Facts::embedded();
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &BTreeMap::from([("Dockerfile".to_owned(), text.to_owned())]));
    let target = Target::of_gpu(&facts, "A100", Some("580.95.05".parse().unwrap())).unwrap();
    let judgement = judged(&facts, directory.path(), &target);
    let parts =
        |finding: cudock_facts::finding::Finding| (finding.code.to_owned(), finding.message, finding.fix);
    judgement.findings.into_iter().map(parts).collect()
}

#[test]
fn a_base_image_that_does_not_exist_is_a_finding_with_the_nearest_tag() {
    let cases = [
        ("nvidia/cuda:latest", "CD0613", "use nvidia/cuda:"),
        ("nvidia/cuda", "CD0613", "use nvidia/cuda:"),
        ("docker.io/nvidia/cuda:11.8-base", "CD0613", "use nvidia/cuda:11.8.0-base-ubuntu22.04"),
        (
            "nvcr.io/nvidia/cuda:12.4.1-cudnn8-runtime-ubuntu22.04",
            "CD0613",
            "12.4.1-cudnn-runtime-ubuntu22.04",
        ),
        ("nvidia/cuda:10.2-base", "CD0613", "use nvidia/cuda:"),
        ("nvidia/cuda-arm64:11.4.0-base-ubuntu20.04", "CD0613", "use nvidia/cuda:11.4.3-base-ubuntu20.04"),
        ("nvidia/cuda:12.6.2-base-ubuntu22.04", "CD0614", "use nvidia/cuda:12.6.3-base-ubuntu22.04"),
    ];
    for (reference, code, fix) in cases {
        let found = findings(&format!("FROM {reference}\n"));
        let finding = found.iter().find(|(found, ..)| found == code);
        let (_, _, found) = finding.unwrap_or_else(|| panic!("{reference}: {found:?}"));
        assert!(found.contains(fix), "{reference}: {found}");
    }
    for exists in ["nvidia/cuda:12.6.3-base-ubuntu22.04", "nvidia/cuda@sha256:0123"] {
        assert!(findings(&format!("FROM {exists}\n")).iter().all(|(code, ..)| code != "CD0613"), "{exists}");
    }
}

#[test]
fn a_range_that_straddles_a_difference_says_where_it_changes() {
    let facts = Facts::embedded();
    let directory = tempfile::tempdir().unwrap();
    write(
        directory.path(),
        &BTreeMap::from([("requirements.txt".to_owned(), "torch>=2.0,<2.5\n".to_owned())]),
    );
    let target = Target::of_gpu(&facts, "H100", Some("550.54.15".parse().unwrap())).unwrap();
    let judgement = judged(&facts, directory.path(), &target);
    assert_eq!(verdict(&judgement), "unknown");
    let finding = judgement.findings.iter().find(|finding| finding.code == "CD0410").unwrap();
    assert!(
        finding.message.contains("fails with error 209 from 2.0.0 on, works from 2.1.0 on"),
        "{}",
        finding.message
    );
}

#[test]
fn files_that_include_each_other_are_read_a_bounded_number_of_times() {
    let line = "-r b.txt\n-r a.txt\n".repeat(200);
    let directory = tempfile::tempdir().unwrap();
    let files = ["requirements.txt", "a.txt", "b.txt"].map(|name| (name.to_owned(), line.clone()));
    write(directory.path(), &BTreeMap::from(files));
    let facts = Facts::embedded();
    let target = Target::of_gpu(&facts, "H100", None).unwrap();
    assert_eq!(verdict(&judged(&facts, directory.path(), &target)), "unknown");
}

/// The verdict on a directory with these files.
fn of_files(files: &[(&str, &str)], card: &str, driver: &str) -> (String, String) {
    let facts = Facts::embedded();
    let directory = tempfile::tempdir().unwrap();
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    write(directory.path(), &files);
    let target = Target::of_gpu(&facts, card, Some(driver.parse().unwrap())).unwrap();
    let judgement = judged(&facts, directory.path(), &target);
    (verdict(&judgement), judgement.reason)
}

#[test]
fn packages_that_compile_at_run_time_do_so_with_the_cuda_of_the_base_image() {
    let install = "RUN apt-get update && apt-get install -y python3-pip\nRUN pip install";
    for (base, packages, card, driver, expected) in [
        ("nvidia/cuda:12.4.1-runtime-ubuntu22.04", "cupy-cuda12x==13.6.0", "RTX 5090", "580.95.05", "fails"),
        ("nvidia/cuda:12.8.1-runtime-ubuntu24.04", "cupy-cuda12x==13.6.0", "RTX 5090", "580.95.05", "works"),
        ("nvidia/cuda:12.4.1-devel-ubuntu22.04", "cupy-cuda12x==13.6.0", "H100", "550.54.15", "works"),
        // Another compiler comes along, or the image has none.
        (
            "nvidia/cuda:12.4.1-runtime-ubuntu22.04",
            "cupy-cuda12x==13.6.0 nvidia-cuda-nvrtc-cu12==12.9.86",
            "RTX 5090",
            "580.95.05",
            "unknown",
        ),
        ("nvidia/cuda:12.4.1-base-ubuntu22.04", "cupy-cuda12x==13.6.0", "RTX 5090", "580.95.05", "unknown"),
        (
            "nvidia/cuda:11.8.0-runtime-ubuntu22.04",
            "cupy-cuda12x==13.6.0",
            "RTX 5090",
            "580.95.05",
            "unknown",
        ),
        ("python:3.11", "cupy-cuda12x==13.6.0", "RTX 5090", "580.95.05", "unknown"),
        // Whether others go over PTX is not documented.
        ("nvidia/cuda:12.4.1-runtime-ubuntu22.04", "numba-cuda==0.15.1", "RTX 5090", "580.95.05", "unknown"),
    ] {
        let text = format!("FROM {base}\n{install} {packages}\n");
        let (found, reason) = of_files(&[("Dockerfile", &text)], card, driver);
        assert_eq!(found, expected, "{text} on {card}: {reason}");
    }
}

#[test]
fn onnxruntime_beside_cuda_wheels_needs_a_program_that_loads_them() {
    let wheels = "nvidia-cublas-cu12 nvidia-cudnn-cu12==9.5.1.17 nvidia-cuda-runtime-cu12 nvidia-cufft-cu12 nvidia-curand-cu12";
    let path = "ENV LD_LIBRARY_PATH=/usr/local/lib/python3.11/site-packages/nvidia/cudnn/lib:/usr/local/lib/python3.11/site-packages/nvidia/cublas/lib\n";
    for (before, packages, expected) in [
        ("", format!("onnxruntime-gpu==1.22.0 {wheels}"), "unknown"),
        ("", "'onnxruntime-gpu[cuda,cudnn]==1.22.0'".to_owned(), "unknown"),
        // torch answers for itself; what onnxruntime does beside it is a warning.
        ("", "onnxruntime-gpu==1.22.0 torch==2.6.0".to_owned(), "works"),
        (path, format!("onnxruntime-gpu==1.22.0 {wheels}"), "works"),
        ("", "onnxruntime-gpu==1.22.0".to_owned(), "cpu"),
        // cuDNN is nowhere: no program can load it.
        ("", "onnxruntime-gpu==1.22.0 nvidia-cublas-cu12".to_owned(), "cpu"),
    ] {
        let text = format!("FROM python:3.11\n{before}RUN pip install {packages}\n");
        let (found, reason) = of_files(&[("Dockerfile", &text)], "A100", "580.95.05");
        assert_eq!(found, expected, "{text}: {reason}");
    }
}

#[test]
fn a_program_of_an_unknown_toolkit_works_where_every_toolkit_does() {
    let lists = |architectures: &str| {
        format!(
            "project(a LANGUAGES CUDA)\nset(CMAKE_CUDA_ARCHITECTURES {architectures})\nadd_executable(a a.cu)\n"
        )
    };
    for (architectures, card, driver, expected) in [
        // CUDA 13 compiles for 8.0 and needs 580; it dropped 7.0.
        ("80-real", "A100", "550.54.15", "unknown"),
        ("80-real", "A100", "580.95.05", "works"),
        ("70-real", "V100", "550.54.15", "works"),
        ("80-real", "V100", "550.54.15", "fails"),
        ("80", "H100", "580.95.05", "unknown"),
    ] {
        let files = [("CMakeLists.txt", &*lists(architectures)), ("a.cu", "")];
        let (found, reason) = of_files(&files, card, driver);
        assert_eq!(found, expected, "{architectures} on {card} with {driver}: {reason}");
    }
}

#[test]
fn images_of_pytorch_hold_the_builds_of_their_day() {
    for (tag, card, expected) in [
        ("2.1.0-cuda11.8-cudnn8-runtime", "RTX 5090", "jit"),
        ("2.4.1-cuda12.4-cudnn9-runtime", "RTX 5090", "fails"),
        // From 2.5.0 on it is the wheel, which has no PTX.
        ("2.5.1-cuda11.8-cudnn9-runtime", "RTX 5090", "fails"),
        ("2.5.1-cuda12.4-cudnn9-runtime", "H100", "works"),
    ] {
        let text = format!("FROM pytorch/pytorch:{tag}\nRUN pip install numpy\n");
        let (found, reason) = of_files(&[("Dockerfile", &text)], card, "580.95.05");
        assert_eq!(found, expected, "{tag} on {card}: {reason}");
    }
}
