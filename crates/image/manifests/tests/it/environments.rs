//! Python's environment files, as people write them.

use cudock_base::Arch;
use cudock_manifests::{Declared, FileKind, LARGEST_FILE, Manager};

use crate::{read, read_for};

/// Packages as lines: `3 torch[extra] ==2.3.1 >=2 cu121 (group)`.
fn packages(declared: &Declared) -> Vec<String> {
    let one = |package: &cudock_manifests::DeclaredPackage| {
        let mut text = format!("{} {}", package.span.line, package.name);
        if !package.extras.is_empty() {
            text += &format!("[{}]", package.extras.join(","));
        }
        for part in [
            package.exact.as_ref().map(|version| format!("=={version}")),
            package.range.clone(),
            package.tag.clone(),
            package.group.as_ref().map(|group| format!("({group})")),
            (package.manager == Manager::Conda).then(|| "conda".to_owned()),
        ] {
            text += &part.map_or_else(String::new, |part| format!(" {part}"));
        }
        text
    };
    declared.packages.iter().map(one).collect()
}

fn notes(declared: &Declared) -> Vec<String> {
    declared.notes.iter().map(|note| format!("{} {}", note.span.line, note.text)).collect()
}

#[test]
fn requirements_are_read_with_all_that_pip_allows_in_them() {
    let text = "\u{feff}# training
--index-url https://pypi.org/simple
--extra-index-url https://download.pytorch.org/whl/cu121
-r base.txt
-e .

torch==2.3.1            # pinned
torchvision
numpy<2 ; python_version < '3.13'
NVIDIA.cuDNN_cu12==8.9.2.26 \\
    --hash=sha256:aaaa \\
    --hash=sha256:bbbb
pywin32>=300; sys_platform == \"win32\"
uvloop ; platform_system != 'Windows'
jax[cuda12, k8s] ~= 0.4.30
xformers===0.0.27
flash-attn @ https://example.org/flash_attn-2.5.8%2Bcu122torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl
https://download.pytorch.org/whl/cu118/torchaudio-2.0.1%2Bcu118-cp310-cp310-linux_x86_64.whl
git+https://github.com/huggingface/transformers.git
private @ git+https://${TOKEN}@example.org/private.git
peft (>=0.10,<1)
";
    let declared = read(FileKind::Requirements, "requirements.txt", text).unwrap();
    assert_eq!(
        packages(&declared),
        [
            "7 torch ==2.3.1 cu121",
            "8 torchvision cu121",
            "9 numpy <2",
            "10 nvidia-cudnn-cu12 ==8.9.2.26",
            "14 uvloop",
            "15 jax[cuda12,k8s] ~=0.4.30",
            "16 xformers ==0.0.27 cu121",
            "17 flash-attn ==2.5.8+cu122torch2.3cxx11abifalse cu122",
            "18 torchaudio ==2.0.1+cu118 cu118",
            "21 peft >=0.10, <1",
        ]
        .map(|line| line.replace(", <1", ",<1"))
    );
    assert_eq!(
        notes(&declared),
        [
            "4 cannot read `base.txt`",
            "5 `.` is installed from source",
            "9 numpy is required only if python_version < '3.13'",
            "19 content of git+https://github.com/huggingface/transformers.git is unknown",
            "20 private @ git+https://${TOKEN}@example.org/private.git depends on TOKEN",
        ]
    );
}

#[test]
fn what_pip_freeze_prints_is_read() {
    let text = "-e git+https://github.com/me/project@abc#egg=project
# Editable install with no version control (other==0.1)
certifi @ file:///croot/certifi_1700501669400/certifi
nvidia-nccl-cu12==2.20.5
torch==2.4.0a0+f70bd71a48.nv24.6
torchvision==0.18.1+rocm6.0
triton==3.0.0
";
    let declared = read(FileKind::Requirements, "freeze.txt", text).unwrap();
    assert_eq!(
        packages(&declared),
        [
            "3 certifi",
            "4 nvidia-nccl-cu12 ==2.20.5",
            "5 torch ==2.4.0a0+f70bd71a48.nv24.6",
            "6 torchvision ==0.18.1+rocm6.0 rocm6.0",
            "7 triton ==3.0.0",
        ]
    );
    assert_eq!(FileKind::guess("frozen", text), Some(FileKind::Requirements));
}

#[test]
fn markers_are_evaluated_for_the_given_machine() {
    let text = "nvidia-cublas-cu12==12.1.3.1 ; platform_system == 'Linux' and platform_machine == 'x86_64'\n";
    let count = |machine| read_for(FileKind::Requirements, "r", text, machine).unwrap().packages.len();
    assert_eq!((count(Arch::X86_64), count(Arch::Aarch64)), (1, 0));
}

#[test]
fn errors_in_requirements_are_shown_with_their_position() {
    let cases = [
        ("ok\ntorch=2.3\n", (2, 6), "`=2.3` is not a version or range of versions"),
        ("  torch>=\n", (1, 8), "`>=` is not a version or range of versions"),
        ("torch[cuda\n", (1, 6), "extras without a closing `]`"),
        ("torch; platform == 'x'\n", (1, 8), "not a marker"),
        ("==2.0\n", (1, 1), "expected a package name"),
        ("é\n", (1, 1), "expected a package name"),
        ("torch @ \n", (1, 7), "expected a URL after `@`"),
    ];
    for (text, place, message) in cases {
        let error = read(FileKind::Requirements, "requirements.txt", text).unwrap_err();
        assert_eq!(((error.line, error.column), error.message.as_str()), (place, message), "{text:?}");
    }
    let error = read(FileKind::Requirements, "a/requirements.txt", "torch=2.3").unwrap_err();
    assert_eq!(error.to_string(), "a/requirements.txt:1:6: `=2.3` is not a version or range of versions");
}

#[test]
fn a_project_is_read_with_its_extras_groups_and_uvs_sources() {
    let text = r#"
[project]
name = "trainer"
requires-python = ">=3.10"
dependencies = [
    "torch>=2.4,<3",
    "numpy",
    "triton ; sys_platform == 'win32'",
]

[project.optional-dependencies]
cpu = ["torch==2.5.1"]
cu124 = ["torch==2.5.1", "vllm"]

[dependency-groups]
dev = ["pytest>=8", { include-group = "lint" }]
lint = ["ruff"]

[tool.uv.sources]
torch = [
    { index = "pytorch-cpu", extra = "cpu" },
    { index = "pytorch-cu124", extra = "cu124" },
    { index = "pytorch-cu121", marker = "sys_platform == 'linux'" },
]
vllm = { git = "https://github.com/vllm-project/vllm" }

[[tool.uv.index]]
name = "pytorch-cpu"
url = "https://download.pytorch.org/whl/cpu"
explicit = true

[[tool.uv.index]]
name = "pytorch-cu124"
url = "https://download.pytorch.org/whl/cu124"
explicit = true

[[tool.uv.index]]
name = "pytorch-cu121"
url = "https://download.pytorch.org/whl/cu121"
explicit = true
"#;
    let declared = read(FileKind::Pyproject, "pyproject.toml", text).unwrap();
    assert_eq!(declared.python.as_deref(), Some(">=3.10"));
    assert_eq!(
        packages(&declared),
        [
            "6 torch >=2.4,<3 cu121",
            "7 numpy",
            "12 torch ==2.5.1 cpu (cpu)",
            "13 torch ==2.5.1 cu124 (cu124)",
            "13 vllm (cu124)",
            "16 pytest >=8 (dev)",
            "17 ruff (lint)",
        ]
    );
    assert_eq!(notes(&declared), ["13 vllm comes from a source that is not an index"]);
}

#[test]
fn poetrys_tables_are_read() {
    let text = r#"
[tool.poetry.dependencies]
python = "^3.11"
torch = { version = "2.3.1", source = "torch121" }
torchvision = { url = "https://download.pytorch.org/whl/cu121/torchvision-0.18.1%2Bcu121-cp311-cp311-linux_x86_64.whl" }
transformers = { version = "^4.40", extras = ["torch"], optional = true }
numpy = "<2"
colorama = { version = "*", platform = "win32" }
mine = { path = "../mine" }
onnxruntime-gpu = [
    { version = "1.18.0", markers = "platform_machine == 'x86_64'" },
    { version = "1.17.0", markers = "platform_machine != 'x86_64'" },
]

[tool.poetry.group.dev.dependencies]
pytest = "*"

[[tool.poetry.source]]
name = "torch121"
url = "https://download.pytorch.org/whl/cu121"
priority = "explicit"
"#;
    let declared = read(FileKind::Pyproject, "pyproject.toml", text).unwrap();
    assert_eq!(declared.python.as_deref(), Some("^3.11"));
    let mut found = packages(&declared);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "11 onnxruntime-gpu ==1.18.0",
            "16 pytest (dev)",
            "4 torch ==2.3.1 cu121",
            "5 torchvision ==0.18.1+cu121 cu121",
            "6 transformers[torch] >=4.40,<5",
            "7 numpy <2",
            "9 mine",
        ]
    );
    assert_eq!(
        notes(&declared),
        ["6 transformers is installed only with an extra", "9 mine comes from a source that is not an index",]
    );
}

#[test]
fn errors_in_a_project_are_shown_with_their_position() {
    let cases = [
        ("[project]\nname = \n", (2, 8)),
        ("[project]\ndependencies = [\n  \"torch=2\",\n]\n", (3, 9)),
        ("[project]\ndependencies = [1]\n", (2, 17)),
        ("[dependency-groups]\ndev = 'x'\n", (2, 7)),
    ];
    for (text, place) in cases {
        let error = read(FileKind::Pyproject, "pyproject.toml", text).unwrap_err();
        assert_eq!((error.line, error.column), place, "{text:?}: {error}");
    }
}

#[test]
fn of_a_lock_the_linux_part_is_read() {
    let text = r#"
version = 1
requires-python = ">=3.11"
resolution-markers = ["sys_platform == 'linux'", "sys_platform != 'linux'"]

[[package]]
name = "trainer"
version = "0.1.0"
source = { virtual = "." }
dependencies = [
    { name = "torch", version = "2.5.1", source = { registry = "https://download.pytorch.org/whl/cpu" }, marker = "sys_platform == 'darwin'" },
    { name = "torch", version = "2.5.1+cu124", source = { registry = "https://download.pytorch.org/whl/cu124" }, marker = "sys_platform != 'darwin'" },
    { name = "colorama", marker = "sys_platform == 'win32'" },
]

[package.optional-dependencies]
fast = [{ name = "flash-attn" }]

[[package]]
name = "torch"
version = "2.5.1"
source = { registry = "https://download.pytorch.org/whl/cpu" }
resolution-markers = ["sys_platform == 'darwin'"]

[[package]]
name = "torch"
version = "2.5.1+cu124"
source = { registry = "https://download.pytorch.org/whl/cu124" }
resolution-markers = ["sys_platform == 'linux'", "sys_platform == 'win32'"]
dependencies = [
    { name = "nvidia-cudnn-cu12", marker = "platform_machine == 'x86_64' and sys_platform == 'linux'" },
    { name = "numpy" },
]

[[package]]
name = "nvidia-cudnn-cu12"
version = "9.1.0.70"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "numpy"
version = "2.1.0"
source = { registry = "https://pypi.org/simple" }
resolution-markers = ["python_full_version >= '3.12'"]

[[package]]
name = "colorama"
version = "0.4.6"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "flash-attn"
version = "2.6.3"
source = { git = "https://github.com/Dao-AILab/flash-attention" }
"#;
    let declared = read(FileKind::UvLock, "uv.lock", text).unwrap();
    assert_eq!(declared.python.as_deref(), Some(">=3.11"));
    assert_eq!(
        packages(&declared),
        [
            "26 torch ==2.5.1+cu124 cu124",
            "36 nvidia-cudnn-cu12 ==9.1.0.70",
            "41 numpy ==2.1.0",
            "52 flash-attn ==2.6.3",
        ]
    );
    assert_eq!(
        notes(&declared),
        [
            "41 numpy is installed only if python_full_version >= '3.12'",
            "52 flash-attn comes from a source that is not an index",
        ]
    );
    let arm = read_for(FileKind::UvLock, "uv.lock", text, Arch::Aarch64).unwrap();
    assert!(arm.packages.iter().all(|package| package.name != "nvidia-cudnn-cu12"));
}

#[test]
fn a_conda_environment_is_read_with_its_list_for_pip() {
    let text = r#"name: train
channels:
  - pytorch
  - nvidia
  - conda-forge
dependencies:
  - python=3.11
  - pytorch=2.3.1=py3.11_cuda12.1_cudnn8.9.2_0   # the build tells
  - "torchvision==0.18.1"
  - pytorch-cuda=12.1
  - conda-forge::cuda-version>=12.1,<13
  - cudnn
  - numpy 1.26.*
  - faiss-gpu[version='>=1.8', build=*cuda12*]
  - pip
  - pip:
      - --extra-index-url https://download.pytorch.org/whl/cu121
      - -r more.txt
      - xformers==0.0.27
      - "transformers[torch]>=4.40"
variables:
  CUDA_HOME: /opt/conda
  OMP_NUM_THREADS: 8
prefix: /opt/conda
"#;
    let declared = read(FileKind::CondaEnvironment, "environment.yml", text).unwrap();
    assert_eq!(declared.channels, ["pytorch", "nvidia", "conda-forge"]);
    assert_eq!(declared.python.as_deref(), Some("3.11"));
    assert_eq!(
        packages(&declared),
        [
            "8 pytorch ==2.3.1 cu121 conda",
            "9 torchvision ==0.18.1 conda",
            "13 numpy 1.26.* conda",
            "14 faiss-gpu >=1.8 cu12 conda",
            "15 pip conda",
            "19 xformers ==0.0.27 cu121",
            "20 transformers[torch] >=4.40",
        ]
    );
    let cuda: Vec<_> = declared
        .cuda_packages
        .iter()
        .map(|found| {
            (
                found.span.line,
                found.name.as_str(),
                found.version.as_deref(),
                found.cuda.map(|cuda| cuda.to_string()),
            )
        })
        .collect();
    assert_eq!(
        cuda,
        [
            (10, "pytorch-cuda", Some("=12.1"), Some("12.1".to_owned())),
            (11, "cuda-version", Some(">=12.1,<13"), None),
            (12, "cudnn", None, None),
        ]
    );
    assert_eq!(declared.environment["OMP_NUM_THREADS"], "8");
    assert_eq!(notes(&declared), ["18 cannot read `more.txt`"]);
}

#[test]
fn errors_in_a_conda_environment_are_shown_with_their_position() {
    let cases = [
        ("dependencies:\n  - a\n - b\n", 3),
        ("dependencies:\n  - a\n  - ==2\n", 3),
        ("- a\n", 1),
        ("dependencies:\n  - pip:\n    - torch=2\n", 3),
        ("dependencies: [a, [b]]\n", 1),
    ];
    for (text, line) in cases {
        let error = read(FileKind::CondaEnvironment, "environment.yml", text).unwrap_err();
        assert_eq!(error.line, line, "{text:?}: {error}");
    }
}

#[test]
fn aliases_cannot_make_more_of_a_file_than_it_holds() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..40 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        bomb += &format!("a{level}: &a{level} [{below}]\n");
    }
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(400_000), "*a, ".repeat(100_000));
    for text in [bomb, long] {
        let error = read(FileKind::CondaEnvironment, "environment.yml", &text).unwrap_err();
        assert!(error.message.contains("expanded aliases exceed the size of the file"), "{error}");
    }
}

#[test]
fn files_that_are_too_large_or_too_deep_are_refused() {
    let large = " ".repeat(LARGEST_FILE + 1);
    for kind in [
        FileKind::Requirements,
        FileKind::Pyproject,
        FileKind::UvLock,
        FileKind::CondaEnvironment,
        FileKind::Dockerfile,
    ] {
        assert_eq!(read(kind, "x", &large).unwrap_err().message, "larger than 16 MiB");
    }
    let brackets = format!("dependencies: {}", "[".repeat(500_000));
    assert!(read(FileKind::CondaEnvironment, "x", &brackets).is_err());
    let brackets = format!("a = {}", "[".repeat(1_000_000));
    assert!(read(FileKind::Pyproject, "x", &brackets).is_err());
}

/// A reader that is quadratic in one of these takes hours: the test then does not end.
#[test]
fn files_made_to_be_slow_are_read_to_their_end() {
    let cases = [
        (FileKind::Requirements, "a # ".repeat(1 << 18)),
        (FileKind::Requirements, "a\\\n".repeat(1 << 18)),
        (FileKind::Requirements, format!("a; {}", "(os_name == 'x' or ".repeat(1 << 17))),
        (FileKind::Requirements, format!("a{}", "[b]".repeat(1 << 18))),
        (FileKind::Requirements, format!("a{}", ">=1,".repeat(1 << 18))),
        (FileKind::CondaEnvironment, format!("dependencies:\n{}", "- a\n".repeat(1 << 17))),
        (FileKind::CondaEnvironment, "- ".repeat(1 << 18)),
        (FileKind::Dockerfile, format!("FROM a\nRUN {}", "${".repeat(1 << 18))),
        (FileKind::Dockerfile, format!("FROM a\nRUN {}", "$(".repeat(1 << 18))),
        (FileKind::Dockerfile, format!("FROM a\nRUN {}", "pip install a;".repeat(1 << 17))),
        (FileKind::Dockerfile, format!("FROM a\nRUN {}", "bash -c \"".repeat(1 << 18))),
        (FileKind::Dockerfile, "FROM a AS a\n".repeat(1 << 16)),
        (FileKind::Dockerfile, format!("FROM a\nRUN a \\\n{}", "b \\\n".repeat(1 << 18))),
        (FileKind::Dockerfile, format!("FROM a\nENV {}", "a=$b ".repeat(1 << 18))),
        (FileKind::UvLock, "[[package]]\nname='a'\nversion='1'\ndependencies=[{name='a'}]\n".repeat(1 << 14)),
    ];
    for (kind, text) in cases {
        read(kind, "x", &text).ok();
    }
}

#[test]
fn kinds_are_guessed_from_name_and_text() {
    let cases = [
        ("requirements.txt", "", Some(FileKind::Requirements)),
        ("deps/requirements-gpu.in", "", Some(FileKind::Requirements)),
        ("freeze.txt", "numpy==1.26.4\n", Some(FileKind::Requirements)),
        ("notes.txt", "hello world\n", None),
        ("pyproject.toml", "", Some(FileKind::Pyproject)),
        ("Cargo.toml", "", None),
        ("uv.lock", "", Some(FileKind::UvLock)),
        ("environment.yml", "name: a\ndependencies:\n  - b\n", Some(FileKind::CondaEnvironment)),
        ("compose.yaml", "services:\n", None),
        ("Dockerfile", "", Some(FileKind::Dockerfile)),
        ("docker/Dockerfile.gpu", "", Some(FileKind::Dockerfile)),
        ("train.Dockerfile", "", Some(FileKind::Dockerfile)),
        ("Containerfile", "", Some(FileKind::Dockerfile)),
        ("build", "# syntax=docker/dockerfile:1\nFROM a\n", Some(FileKind::Dockerfile)),
        ("", "", None),
    ];
    for (name, text, kind) in cases {
        assert_eq!(FileKind::guess(name, text), kind, "{name}");
    }
}
