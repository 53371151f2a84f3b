//! Generates the files of the projects in `examples/`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cudock_compat::{BuildContext, Context, Target, gather_dockerfile, judge};
use cudock_facts::Facts;
use cudock_init::{Detected, InitContext, InitOptions, Scaffold, detect, generate};
use cudock_lint::{LintOptions, LintTarget, lint};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name)
}

fn target(facts: &Facts, name: &str, driver: Option<&str>) -> Option<Target> {
    let driver = driver.map(|driver| driver.parse().unwrap());
    Target::named(facts, name, driver, "2026-11-15".parse().unwrap()).unwrap()
}

fn only_kind(facts: &Facts, files: &BuildContext) -> Detected {
    let detected = detect(facts, files).unwrap();
    assert_eq!(detected.len(), 1, "{detected:?}");
    detected.into_iter().next().unwrap()
}

fn scaffold(name: &str, target: Option<&Target>, options: &InitOptions) -> Result<Scaffold, String> {
    let (facts, files) = (Facts::embedded(), BuildContext::new(&example(name)));
    let detected = only_kind(&facts, &files);
    let context = InitContext { facts: &facts, files: &files, name, target };
    generate(&context, &detected, options).map_err(|error| error.to_string())
}

fn text(scaffold: &Scaffold) -> String {
    let files = scaffold.files.iter().map(|file| format!("==> {} <==\n{}", file.path, file.text));
    let notes = scaffold.notes.iter().map(|note| format!("note: {note}\n"));
    files.chain(notes).collect::<Vec<_>>().join("\n")
}

const EXAMPLES: [(&str, &str); 10] = [
    ("cmake-cuda", "cmake (CMakeLists.txt)"),
    ("custom-library", "cmake (CMakeLists.txt)"),
    ("make-cuda", "make (Makefile)"),
    ("torch-pip", "torch by pip (requirements.txt)"),
    ("torch-uv", "torch by uv (uv.lock)"),
    ("torch-conda", "torch by conda (environment.yml)"),
    ("tensorflow", "tensorflow by pip (requirements.txt)"),
    ("jax", "jax by pip (requirements.txt)"),
    ("cuda-python", "cuda-python by pip (requirements.txt)"),
    ("onnx-model", "onnx (model.onnx)"),
];

#[test]
fn the_kind_of_each_example_is_detected() {
    let facts = Facts::embedded();
    for (name, expected) in EXAMPLES {
        let detected = only_kind(&facts, &BuildContext::new(&example(name)));
        assert_eq!(detected.to_string(), expected, "{name}");
    }
}

#[test]
fn generated_files_are_as_reviewed_and_lint_clean() {
    let facts = Facts::embedded();
    let cases = [
        ("cmake-cuda", "T4", None),
        ("cmake-cuda", "H100", Some("535.161.08")),
        ("custom-library", "H100", None),
        ("make-cuda", "T4", None),
        ("torch-pip", "T4", None),
        ("torch-pip", "V100", None),
        ("torch-pip", "cpu", None),
        ("torch-uv", "H100", None),
        ("torch-conda", "T4", None),
        ("tensorflow", "T4", None),
        ("tensorflow", "cpu", None),
        ("jax", "H100", None),
        ("jax", "T4", Some("550")),
        ("cuda-python", "H100", None),
        ("onnx-model", "T4", None),
        ("onnx-model", "cpu", None),
    ];
    for (name, gpu, driver) in cases {
        let target = target(&facts, gpu, driver);
        let scaffold = scaffold(name, target.as_ref(), &InitOptions::default()).unwrap();
        let snapshot =
            format!("{name}-{}", [Some(gpu), driver].into_iter().flatten().collect::<Vec<_>>().join("-"));
        insta::assert_snapshot!(snapshot.clone(), text(&scaffold));
        let lint_target = target.map_or(LintTarget::Cpu, |target| LintTarget::Gpu(Box::new(target)));
        let files = BuildContext::new(&example(name));
        let options = LintOptions { target: Some(&lint_target), files: &files, ..LintOptions::new(&facts) };
        let dockerfile = scaffold.files.iter().find(|file| file.path == "Dockerfile").unwrap();
        let findings = lint("Dockerfile", &dockerfile.text, &options).unwrap();
        assert!(findings.is_empty(), "{snapshot}: {findings:#?}");
    }
}

/// What `init` writes and what `check` says cannot disagree.
#[test]
fn generated_files_parse_and_run_on_their_target() {
    let facts = Facts::embedded();
    let environment = BTreeMap::new();
    for (name, _) in EXAMPLES {
        for gpu in ["T4", "H100", "Standard_NC4as_T4_v3"] {
            let target = target(&facts, gpu, None).unwrap();
            let files = BuildContext::new(&example(name));
            let scaffold = scaffold(name, Some(&target), &InitOptions::default()).unwrap();
            for file in &scaffold.files {
                match file.path {
                    "cudock.toml" => {
                        let manifest = cudock_project::parse(Path::new(file.path), &file.text).unwrap();
                        assert_eq!(manifest.needs.gpu, [target.gpu.clone().unwrap()], "{name}");
                    }
                    "Dockerfile" => {
                        let context =
                            Context { facts: &facts, environment: &environment, on_this_machine: false };
                        let arch = cudock_base::Arch::X86_64;
                        let evidence = gather_dockerfile(&file.text, arch, &files, &context).unwrap();
                        let judgement = judge(&evidence, &target, &facts);
                        let verdict = judgement.verdict.name();
                        // The tables do not have the GPU code of conda-forge's builds. TensorFlow has PTX for Hopper.
                        let expected = match (name, gpu) {
                            ("torch-conda", _) => "unknown",
                            ("tensorflow", "H100") => "jit",
                            _ => "works",
                        };
                        assert_eq!(verdict, expected, "{name} {gpu}: {}", judgement.reason);
                    }
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn what_cannot_run_is_refused_with_the_reason() {
    let facts = Facts::embedded();
    let cases = [
        ("cmake-cuda", "cpu", None, "CMakeLists.txt builds a program that needs an NVIDIA GPU"),
        ("cuda-python", "cpu", None, "the packages in requirements.txt need a GPU"),
        ("cuda-python", "T4", Some("535"), "requirements.txt will not run on T4 (7.5)"),
        ("torch-uv", "V100", None, "torch 2.15.0 in uv.lock will not run on V100"),
    ];
    for (name, gpu, driver, expected) in cases {
        let target = target(&facts, gpu, driver);
        let error = scaffold(name, target.as_ref(), &InitOptions::default()).unwrap_err();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn options_override_what_would_be_chosen() {
    let facts = Facts::embedded();
    let target = target(&facts, "T4", None);
    let options = InitOptions {
        python: Some("3.12".to_owned()),
        cuda: Some("12.6".parse().unwrap()),
        command: Some("python train.py --epochs 3".to_owned()),
    };
    let dockerfile = text(&scaffold("torch-pip", target.as_ref(), &options).unwrap());
    for expected in [
        "FROM python:3.12-slim",
        "/whl/cu126 torch==2.15.0",
        r#"CMD ["python", "train.py", "--epochs", "3"]"#,
    ] {
        assert!(dockerfile.contains(expected), "{expected}\n{dockerfile}");
    }
}

#[test]
fn options_without_effect_are_refused() {
    let facts = Facts::embedded();
    let target = target(&facts, "T4", None);
    let python = InitOptions { python: Some("3.12".to_owned()), ..InitOptions::default() };
    let cuda = InitOptions { cuda: Some("12.6".parse().unwrap()), ..InitOptions::default() };
    let cases = [
        ("cmake-cuda", &python, "--python has no effect: CMakeLists.txt builds no Python program"),
        ("torch-conda", &python, "--python has no effect: environment.yml determines the Python version"),
        ("torch-uv", &cuda, "--cuda has no effect: uv.lock determines the builds"),
        ("cuda-python", &cuda, "--cuda has no effect: requirements.txt determines the builds"),
    ];
    for (name, options, expected) in cases {
        assert_eq!(scaffold(name, target.as_ref(), options).unwrap_err(), expected, "{name}");
    }
}

/// The model is the one that the tests of the server use, too.
#[test]
fn the_model_of_the_example_is_that_of_the_testkit() {
    let bytes = std::fs::read(example("onnx-model").join("model.onnx")).unwrap();
    assert!(bytes == cudock_testkit::onnx::sums());
}
