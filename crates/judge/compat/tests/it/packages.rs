//! What packages mean for a GPU: those that use one, those that do not, and those of which nothing is known.

use std::collections::BTreeMap;

use cudock_compat::{Context, Judgement, Target, Verdict, gather, judge, subject};
use cudock_facts::Facts;
use proptest::prelude::*;

/// Judges the text of a file of this name on a card with a driver.
fn judged(name: &str, text: &str, gpu: &str, driver: &str) -> Judgement {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    let facts = Facts::embedded();
    let context = Context { facts: &facts, environment: &BTreeMap::new(), on_this_machine: false };
    let subject = subject(path.to_str().unwrap()).unwrap();
    let evidence = gather(&subject, name, &context).unwrap();
    let target = Target::of_gpu(&facts, gpu, Some(driver.parse().unwrap())).unwrap();
    judge(&evidence, &target, &facts)
}

fn requirements(text: &str, gpu: &str, driver: &str) -> Judgement {
    judged("requirements.txt", text, gpu, driver)
}

fn conda(dependencies: &str, gpu: &str, driver: &str) -> Judgement {
    let text = format!("channels:\n  - conda-forge\ndependencies:\n{dependencies}");
    judged("environment.yml", &text, gpu, driver)
}

fn codes(judgement: &Judgement) -> Vec<&str> {
    judgement.findings.iter().map(|finding| finding.code).collect()
}

/// Packages of the review that were called `cpu`.
#[test]
fn a_package_that_can_use_a_gpu_is_never_judged_cpu() {
    let packages = [
        "sglang==0.5.0",
        "xgboost==3.0.5",
        "catboost==1.2.5",
        "ctranslate2==4.5.0",
        "faiss-gpu-cu12==1.14.1.post1",
        "paddlepaddle-gpu==2.6.2",
        "mxnet-cu112==1.9.1",
        "nvidia-dali-cuda120==2.4.0",
        "tensorrt==10.13.2.6",
        "spconv-cu118==2.3.8",
        "dgl-cu110==0.6.1",
        "libcudf-cu12==25.6.0",
        "taichi==1.7.3",
        "sgl-kernel==0.3.9",
        "lightgbm==4.6.0",
        "numba-cuda==0.19.0",
        "cupy-cuda12x==13.5.1",
        "tensorflow-gpu==2.10.0",
        "jaxlib==0.4.7+cuda11.cudnn86",
        "flash-attn==2.8.0",
        "vllm",
        "accelerate==1.9.0",
        "nvidia-cublas-cu12==12.4.5.8",
        "rembg[gpu]==2.0.60\nonnxruntime==1.20.0",
        "flask[cuda12]",
        "numba==0.61.0",
        "pynvml==12.0.0",
        "a-package-nobody-knows==1.0",
    ];
    for package in packages {
        let found = requirements(&format!("numpy==2.1.0\n{package}\n"), "A100", "580.159.04");
        assert!(
            !matches!(found.verdict, Verdict::Cpu | Verdict::Fails),
            "{package}: {:?}, {}",
            found.verdict,
            found.reason
        );
    }
}

#[test]
fn a_file_of_packages_known_not_to_use_a_gpu_is_cpu() {
    let text = "flask==3.0\nrequests\nnumpy==2.1.0\npandas\nscikit-learn\nscipy\npillow\nboto3\npytest\nmxnet==1.9.1\n";
    let found = requirements(text, "A100", "580.159.04");
    assert_eq!(found.verdict, Verdict::Cpu, "{}", found.reason);
    assert!(codes(&found).contains(&"CD0609"));
}

#[test]
fn an_unknown_package_is_named_with_what_to_do() {
    let found = requirements("numpy\nacme-models==1.2\nzeta\n", "A100", "580.159.04");
    assert_eq!(found.verdict, Verdict::Unknown);
    let finding = found.findings.iter().find(|finding| finding.code == "CD0610").unwrap();
    assert_eq!(finding.message, "acme-models, zeta are not in the tables of packages");
    assert!(finding.fix.contains("pip download --no-deps acme-models==1.2"), "{}", finding.fix);
}

#[test]
fn a_package_that_wraps_another_is_judged_by_it() {
    let driver = "580.159.04";
    let cases = [
        ("accelerate==1.9.0\ntorch==2.5.1\n", "A100", Verdict::Works),
        ("accelerate==1.9.0\ntorch==2.5.1+cpu\n", "A100", Verdict::Cpu),
        ("transformers==4.50.0\ntorch==2.5.1\n", "B200", Verdict::Fails),
        ("transformers==4.50.0\n", "A100", Verdict::Unknown),
        ("faster-whisper==1.1.0\n", "A100", Verdict::Unknown),
        // vLLM pins its torch: 0.9.2 brings 2.7.0, which has no code for B200. Its own code is not in the tables.
        ("vllm==0.9.2\n", "A100", Verdict::Unknown),
        ("vllm==0.9.2\n", "B200", Verdict::Fails),
        ("vllm==0.9.2\ntorch==2.7.0\n", "A100", Verdict::Works),
        ("torchvision==0.20.1\n", "B200", Verdict::Fails),
        (
            "jax==0.5.0\njaxlib==0.5.0\njax-cuda12-plugin==0.5.0\njax-cuda12-pjrt==0.5.0\nnvidia-cudnn-cu12==9.1.0.70\n",
            "A100",
            Verdict::Works,
        ),
        ("jax-cuda12-plugin==0.5.0\n", "A100", Verdict::Unknown),
    ];
    for (text, gpu, verdict) in cases {
        let found = requirements(text, gpu, driver);
        assert_eq!(found.verdict, verdict, "{text}: {}", found.reason);
    }
}

#[test]
fn a_cuda_variant_is_judged_by_the_cuda_in_its_name() {
    let cases = [
        // CUDA 12 needs R525, CUDA 13 needs R580 and has dropped Volta.
        ("cupy-cuda12x==13.5.1\n", "T4", "470.256.02", Verdict::Fails, Some(35)),
        ("cupy-cuda12x==13.5.1\n", "T4", "535.161.08", Verdict::Works, None),
        ("cupy-cuda13x==14.0.0\n", "V100", "580.159.04", Verdict::Fails, Some(209)),
        ("cupy-cuda13x==14.0.0\n", "T4", "580.159.04", Verdict::Works, None),
        ("cudf-cu13==25.10.0\n", "T4", "550.163.01", Verdict::Fails, Some(35)),
        ("mxnet-cu112==1.9.1\n", "H100", "580.159.04", Verdict::Unknown, None),
        ("spconv-cu118==2.3.8\n", "A100", "450.51.06", Verdict::Fails, Some(35)),
        ("faiss-gpu-cu12==1.14.1.post1\n", "A100", "470.256.02", Verdict::Fails, Some(35)),
        ("xgboost==3.4.0\n", "T4", "550.163.01", Verdict::Fails, Some(35)),
        ("xgboost==3.0.5\n", "T4", "550.163.01", Verdict::Unknown, None),
    ];
    for (text, gpu, driver, verdict, error) in cases {
        let found = requirements(text, gpu, driver);
        assert_eq!(found.verdict, verdict, "{text} on {gpu}, {driver}: {}", found.reason);
        assert_eq!(found.error.and_then(|error| error.code), error, "{text} on {gpu}, {driver}");
    }
}

#[test]
fn a_card_below_the_documented_minimum_fails() {
    let found = requirements("vllm==0.9.2\n", "P100", "580.159.04");
    assert_eq!(found.verdict, Verdict::Fails, "{}", found.reason);
    assert!(codes(&found).contains(&"CD0413"), "{:?}", codes(&found));
}

/// The reviewed cases of conda, and the builds of other channels and frameworks.
#[test]
fn conda_builds_are_not_judged_by_the_wheels_of_pypi() {
    let driver = "580.159.04";
    let cases = [
        ("  - pytorch=2.0.1\n  - cpuonly\n", "H100", Verdict::Cpu),
        ("  - pytorch-gpu=2.1.0\n", "H100", Verdict::Unknown),
        ("  - pytorch=2.0.1\n  - cudatoolkit=11.8.0\n", "H100", Verdict::Unknown),
        ("  - pytorch=2.0.1\n", "A100", Verdict::Unknown),
        ("  - pytorch=2.0.1=py3.10_cpu_0\n", "A100", Verdict::Cpu),
        ("  - pytorch=2.5.1=cpu_mkl_py311h1234567_0\n", "A100", Verdict::Cpu),
        ("  - pytorch=2.5.1=cuda118_py311h1234567_0\n", "A100", Verdict::Unknown),
        ("  - pytorch=2.5.1\n  - pytorch-cuda=12.4\n", "H100", Verdict::Works),
        ("  - pytorch=2.5.1\n  - pytorch-cuda=12.4\n", "B200", Verdict::Fails),
        ("  - pytorch=2.5.1\n  - pytorch-cuda=11.8\n", "H100", Verdict::Works),
        ("  - tensorflow=2.15.0=cuda120py311h5cbd639_0\n", "A100", Verdict::Unknown),
        ("  - tensorflow-cpu=2.15.0\n", "A100", Verdict::Cpu),
        ("  - tensorflow-gpu=2.15.0\n", "A100", Verdict::Unknown),
        ("  - jaxlib=0.4.30=*cuda*\n  - jax\n", "A100", Verdict::Unknown),
        ("  - jaxlib=0.4.30=cpu_py311h1234567_0\n", "A100", Verdict::Cpu),
        ("  - py-xgboost-cpu=2.1.0\n", "A100", Verdict::Cpu),
        ("  - py-xgboost-gpu=2.1.0\n", "A100", Verdict::Unknown),
        ("  - onnxruntime=1.20.1\n", "A100", Verdict::Unknown),
        ("  - cupy=13.3.0\n", "A100", Verdict::Unknown),
        ("  - numpy\n  - pandas\n  - openssl\n", "A100", Verdict::Cpu),
        ("  - numpy\n  - acme-solver\n", "A100", Verdict::Unknown),
    ];
    for (dependencies, gpu, verdict) in cases {
        let found = conda(dependencies, gpu, driver);
        assert_eq!(found.verdict, verdict, "{dependencies}: {}", found.reason);
        for finding in &found.findings {
            assert!(!finding.fix.contains("download.pytorch.org"), "{dependencies}: {}", finding.fix);
            assert!(!finding.fix.contains("PyTorch's index"), "{dependencies}: {}", finding.fix);
        }
    }
    let old = conda("  - pytorch-gpu=2.5.1\n  - cuda-version=12.4\n", "A100", "470.256.02");
    assert_eq!(old.error.and_then(|error| error.code), Some(35), "{}", old.reason);
    let plain = conda("  - pytorch=2.0.1\n", "A100", driver);
    assert!(
        plain.findings.iter().any(|finding| finding.fix.contains("conda install -c conda-forge pytorch-gpu"))
    );
}

#[test]
fn packages_that_cannot_be_installed_together_fail() {
    let cases = [
        ("torch==2.0.1+cu118\ntorchvision==0.16.0+cu121\n", Some("CD0411")),
        ("torch==2.5.1\ntorchaudio==2.4.0\n", Some("CD0411")),
        ("vllm==0.9.2\ntorch==2.5.1\n", Some("CD0411")),
        ("xformers==0.0.28.post3\ntorch>=2.6\n", Some("CD0411")),
        ("torch==2.1.0+cu118\ntorchvision==0.16.0+cu121\n", Some("CD0411")),
        ("torch==2.5.1\ntorch==2.6.0\n", Some("CD0412")),
        ("torch==2.5.1\ntorch>=2.6\n", Some("CD0412")),
        ("numpy==1.26.4\nnumpy==2.1.0\n", Some("CD0412")),
        ("torch==2.5.1\ntorch>=2\n", None),
        ("torch==2.5.1\ntorch==2.5.1+cu124\n", None),
        ("torch==2.1.0+cu121\ntorchvision==0.16.0+cu121\ntorchaudio==2.1.0+cu121\n", None),
        ("torch==2.5.1; python_version < '3.12'\ntorch==2.6.0; python_version >= '3.12'\n", None),
    ];
    for (text, code) in cases {
        let found = requirements(text, "A100", "580.159.04");
        let conflict = codes(&found).into_iter().find(|code| matches!(*code, "CD0411" | "CD0412"));
        assert_eq!(conflict, code, "{text}: {}", found.reason);
        assert_eq!(found.verdict == Verdict::Fails, code.is_some(), "{text}: {}", found.reason);
    }
}

/// The wheel holds PTX alone for the newest target of its build: requirement and wheel must agree.
#[test]
fn tensorflow_is_compiled_by_the_driver_on_the_newest_target_of_its_build() {
    let cases = [
        ("2.15.0", "A100", Verdict::Jit),
        ("2.15.0", "T4", Verdict::Works),
        ("2.18.0", "H100", Verdict::Jit),
        ("2.18.0", "A100", Verdict::Works),
        ("2.14.1", "A100", Verdict::Jit),
        ("2.16.1", "A100", Verdict::Works),
        ("2.17.0", "B200", Verdict::Fails),
        ("2.20.0", "RTX 5090", Verdict::Fails),
        ("2.21.0", "RTX 5090", Verdict::Jit),
    ];
    for (version, gpu, verdict) in cases {
        let found = requirements(&format!("tensorflow[and-cuda]=={version}\n"), gpu, "580.159.04");
        assert_eq!(found.verdict, verdict, "{version} on {gpu}: {}", found.reason);
    }
}

#[test]
fn a_driver_branch_means_its_last_release() {
    let torch = "torch==2.1.0\n";
    for driver in ["525", "R525", "r525"] {
        let found = requirements(torch, "A100", driver);
        assert_eq!(found.verdict, Verdict::Works, "{driver}: {}", found.reason);
        let finding = found.findings.iter().find(|finding| finding.code == "CD0220").expect("a finding");
        assert!(finding.message.contains("525.147.05"), "{}", finding.message);
        assert!(finding.message.contains("525.60.13"), "{}", finding.message);
    }
    assert!(!codes(&requirements(torch, "A100", "535")).contains(&"CD0220"));
    assert_eq!(requirements(torch, "A100", "525.53").verdict, Verdict::Fails);
    assert_eq!(requirements("torch==1.13.1\n", "A100", "450").verdict, Verdict::Works);
}

fn known() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "numpy==2.1.0",
        "pandas",
        "flask>=3",
        "requests==2.32.0",
        "torch==2.5.1+cpu",
        "onnxruntime==1.20.0",
    ])
}

/// Lines of which nobody can say what they install.
fn open_line() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{3,8}-unheardof(==[0-9]\\.[0-9])?",
        Just("-r other.txt".to_owned()),
        Just("-e .".to_owned()),
        Just("acme @ git+https://git.example/acme.git".to_owned()),
        Just("./wheels/acme.tar.gz".to_owned()),
        Just("${PACKAGE}==1.0".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_not_known_is_never_judged_cpu_or_fails(
        before in prop::collection::vec(known(), 0..4),
        open in open_line(),
        after in prop::collection::vec(known(), 0..3),
        (gpu, driver) in prop::sample::select(vec![("T4", "470"), ("A100", "550.163.01"), ("B200", "580.159.04")]),
    ) {
        // One build of a package is enough; two would contradict each other.
        let mut lines: Vec<String> = before.into_iter().map(str::to_owned).collect();
        lines.push(open.clone());
        lines.extend(after.into_iter().map(str::to_owned));
        let mut seen = std::collections::BTreeSet::new();
        lines.retain(|line| seen.insert(line.clone()));

        let text = lines.join("\n");
        let found = requirements(&text, gpu, driver);
        prop_assert_eq!(found.verdict, Verdict::Unknown, "{}: {}", text, found.reason);

        let pip: String = lines.iter().map(|line| format!("      - {line}\n")).collect();
        let environment = format!("dependencies:\n  - python=3.11\n  - numpy\n  - pip:\n{pip}");
        let found = judged("environment.yml", &environment, gpu, driver);
        prop_assert_eq!(found.verdict, Verdict::Unknown, "{}: {}", environment, found.reason);

        let arguments: String = lines.iter().map(|line| format!(" \\\n    \"{line}\"").replace("\"-r ", "-r \"").replace("\"-e ", "-e \"")).collect();
        let dockerfile = format!("FROM python:3.11-slim\nRUN pip install{arguments}\n");
        let found = judged("Dockerfile", &dockerfile, gpu, driver);
        prop_assert_eq!(found.verdict, Verdict::Unknown, "{}: {}", dockerfile, found.reason);
    }
}
