//! Near misses of the rules for pip and uv.

use cudock_facts::Facts;
use cudock_facts::finding::Severity;

use crate::codes_between;
use crate::examples::findings;

fn codes(text: &str) -> Vec<&'static str> {
    codes_between(text, "CD0736", "CD0747")
}

/// A wheel of torch carries its own CUDA: the base image's matters only for what its nvcc compiles.
#[test]
fn cuda_of_wheel_and_base_image_may_differ_unless_extensions_are_compiled() {
    let facts = Facts::embedded();
    let wheels = [("2.4.1", "cu118"), ("2.4.1", "cu121"), ("2.7.1", "cu126")];
    let tags = [
        "12.1.1-base-ubuntu22.04",
        "12.4.1-runtime-ubuntu22.04",
        "12.6.3-cudnn-runtime-ubuntu24.04",
        "12.8.1-base-ubuntu24.04",
        "12.1.1-devel-ubuntu22.04",
        "12.6.3-cudnn-devel-ubuntu22.04",
    ];
    for (version, wheel) in wheels {
        for tag in tags {
            let file = format!(
                "# for: A100, driver 580\nFROM nvidia/cuda:{tag}\nENV TORCH_CUDA_ARCH_LIST=8.0\nRUN pip install --no-cache-dir torch=={version} --index-url https://download.pytorch.org/whl/{wheel}\n"
            );
            let errors: Vec<_> =
                findings(&facts, &file).into_iter().filter(|one| one.severity == Severity::Error).collect();
            assert!(errors.is_empty(), "{wheel} on {tag}: {errors:?}");
            let compiles = format!("{file}RUN pip install --no-cache-dir torch-scatter==2.1.2\n");
            let is_refused = codes(&compiles).contains(&"CD0736");
            assert_eq!(is_refused, wheel == "cu118" && tag.contains("devel"), "{wheel} on {tag}, compiling");
        }
    }
}

/// Files, and the codes that are found in them.
const NEAR_MISSES: &[(&str, &[&str])] = &[
    // pip's cache
    ("FROM python:3.12-slim\nENV PIP_NO_CACHE_DIR=1\nRUN pip install torch==2.9.1\n", &[]),
    ("FROM python:3.12-slim\nRUN pip install torch==2.9.1\nENV PIP_NO_CACHE_DIR=1\n", &["CD0737"]),
    ("FROM python:3.12-slim AS base\nENV PIP_NO_CACHE_DIR=1\nFROM base\nRUN pip install torch==2.9.1\n", &[]),
    (
        "FROM python:3.12-slim AS base\nARG PIP_NO_CACHE_DIR=1\nFROM base\nRUN pip install torch==2.9.1\n",
        &["CD0737"],
    ),
    ("FROM python:3.12-slim\nRUN PIP_NO_CACHE_DIR=1 pip install torch==2.9.1\n", &[]),
    ("FROM python:3.12-slim\nRUN pip install torch==2.9.1 && pip cache purge\n", &[]),
    ("FROM python:3.12-slim\nRUN pip install torch==2.9.1 && rm -rf ~/.cache\n", &[]),
    ("FROM python:3.12-slim\nRUN pip install requests==2.32.0\n", &[]),
    ("FROM team/base:1\nRUN pip install torch==2.9.1\n", &[]),
    ("FROM python:3.12-slim AS build\nRUN pip install torch==2.9.1\nFROM python:3.12-slim\n", &[]),
    ("FROM nvidia/cuda:12.8.1-base-ubuntu24.04\nRUN pip install -r requirements.txt\n", &["CD0737"]),
    ("FROM python:3.12-slim\nRUN uv pip install --system torch==2.9.1\n", &["CD0737"]),
    ("FROM python:3.12-slim\nENV UV_NO_CACHE=1\nRUN uv pip install --system torch==2.9.1\n", &[]),
    (
        "FROM python:3.12-slim\nRUN --mount=type=cache,target=/root/.cache/uv uv pip install --system torch==2.9.1\n",
        &[],
    ),
    (
        "FROM python:3.12-slim\nUSER app\nRUN --mount=type=cache,target=/root/.cache/pip pip install torch==2.9.1\n",
        &["CD0737"],
    ),
    (
        "FROM python:3.12-slim\nUSER ann\nRUN --mount=type=cache,target=/home/ann/.cache/pip pip install torch==2.9.1\n",
        &[],
    ),
    // duplicate CUDA
    ("FROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nRUN pip install --no-cache-dir torch==2.9.1\n", &[]),
    (
        "FROM nvidia/cuda:12.8.1-cudnn-runtime-ubuntu24.04\nRUN pip install --no-cache-dir torch==2.9.1 onnxruntime-gpu==1.22.0\n",
        &[],
    ),
    (
        "FROM nvidia/cuda:12.8.1-runtime-ubuntu24.04\nRUN pip install --no-cache-dir torch==2.9.1 torchvision==0.24.1\n",
        &["CD0739"],
    ),
    (
        "FROM nvidia/cuda:12.8.1-runtime-ubuntu24.04\nRUN pip install --no-cache-dir torch==2.9.1 --index-url https://download.pytorch.org/whl/cpu\n",
        &[],
    ),
    // unpinned torch takes what is newest today, for CUDA 13
    (
        "FROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nRUN pip install --no-cache-dir torch\nRUN TORCH_CUDA_ARCH_LIST=8.0 pip install --no-cache-dir torch-scatter==2.1.2\n",
        &["CD0736"],
    ),
    (
        "FROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nRUN apt-get install -y cuda-toolkit-13-0\nRUN pip install --no-cache-dir torch==2.11.0\nRUN TORCH_CUDA_ARCH_LIST=8.0 pip install --no-cache-dir torch-scatter==2.1.2\n",
        &[],
    ),
    // a wheel that is found elsewhere is not compiled
    (
        "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch-scatter==2.1.2 -f https://data.pyg.org/whl/torch-2.4.0+cu121.html\n",
        &[],
    ),
    (
        "FROM python:3.11-slim\nRUN pip install --no-cache-dir git+https://github.com/facebookresearch/detectron2.git@v0.6\n",
        &["CD0742"],
    ),
    (
        "FROM pytorch/pytorch:2.7.1-cuda12.8-cudnn9-devel\nRUN pip install --no-cache-dir flash-attn==2.8.3\n",
        &[],
    ),
    (
        "FROM python:3.11-slim\nRUN if [ -n \"$GPU\" ]; then pip install --no-cache-dir flash-attn==2.8.3; fi\n",
        &[],
    ),
    // tensorflow-gpu
    ("FROM python:3.11-slim\nRUN pip install --no-cache-dir 'tensorflow-gpu'\n", &["CD0741"]),
    ("FROM condaforge/miniforge3:25.3.1-0\nRUN conda install -c conda-forge tensorflow-gpu=2.17\n", &[]),
    // indexes
    (
        "FROM python:3.11-slim\nRUN uv pip install --no-cache --system torch --extra-index-url https://download.pytorch.org/whl/cu121\n",
        &[],
    ),
    (
        "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.7.0 --extra-index-url https://download.pytorch.org/whl/cu121\n",
        &["CD0743"],
    ),
    (
        "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch --index-url https://download.pytorch.org/whl/cu121\n",
        &[],
    ),
    // quotes
    ("FROM python:3.12-slim\nRUN pip install --no-cache-dir \"torch>=2.4\" numpy > install.log 2>&1\n", &[]),
    ("FROM python:3.12-slim\nRUN pip install --no-cache-dir numpy<2\n", &["CD0744"]),
    ("FROM python:3.12-slim\nRUN echo torch>=2\n", &[]),
    // Python
    ("FROM python:3.13-slim\nRUN uv python install 3.11 && pip install --no-cache-dir torch==2.3.1\n", &[]),
    ("FROM python:3.13.2-slim-bookworm\nRUN pip install --no-cache-dir tensorflow==2.19.0\n", &["CD0745"]),
    // one after the other
    (
        "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.4.0 && pip install --no-cache-dir torch==2.5.1\n",
        &[],
    ),
    (
        "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.5.1\nRUN pip install --no-cache-dir torch==2.5.1 numpy\n",
        &[],
    ),
    (
        "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.5.1 --index-url https://download.pytorch.org/whl/cu121\nRUN pip install --no-cache-dir torch==2.5.1 numpy\n",
        &[],
    ),
    (
        "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.5.1\nRUN pip install --no-cache-dir torch==2.5.1+cu121 -f https://download.pytorch.org/whl/torch_stable.html\n",
        &["CD0747"],
    ),
    (
        "FROM python:3.12-slim\nRUN pip install --no-cache-dir torch --extra-index-url https://pypi.nvidia.com --index-url https://download.pytorch.org/whl/cu126\n",
        &[],
    ),
    // builds of one torch
    (
        "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.5.1 torchvision==0.20.1 --index-url https://download.pytorch.org/whl/cu121\n",
        &[],
    ),
    (
        "FROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.11.0 nvidia-nccl-cu12==2.27.3\n",
        &["CD0740"],
    ),
    ("FROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.11.0 cupy-cuda13x==13.6.0\n", &[]),
];

#[test]
fn near_misses() {
    for (text, expected) in NEAR_MISSES {
        assert_eq!(codes(text), *expected, "{text}");
    }
}

#[test]
fn a_version_is_open_unless_something_bounds_it() {
    let cases: &[(&str, bool)] = &[
        ("RUN pip install --no-cache-dir torch", true),
        ("RUN pip install --no-cache-dir 'torch>=2.4'", true),
        ("RUN pip install --no-cache-dir 'torch>=2.4,<2.6'", false),
        ("RUN pip install --no-cache-dir 'torch~=2.4'", false),
        ("RUN pip install --no-cache-dir torch -c constraints.txt", false),
        ("RUN pip install --no-cache-dir vllm==0.9.2 torch", false),
        ("RUN pip install --no-cache-dir torch --index-url https://download.pytorch.org/whl/cu118", false),
        ("RUN pip install --no-cache-dir numpy requests", false),
        ("RUN if true; then pip install --no-cache-dir torch; fi", false),
        ("RUN conda install -y -c conda-forge pytorch", true),
        ("RUN conda install -y -c conda-forge pytorch=2.7", false),
        ("RUN pip install --no-cache-dir $TORCH", false),
    ];
    for (run, is_open) in cases {
        let text = format!("FROM python:3.12-slim\n{run}\n");
        let is_found = codes_between(&text, "CD0410", "CD0410") == ["CD0410"];
        assert_eq!(is_found, *is_open, "{run}");
    }
}

#[test]
fn a_fix_keeps_the_rest_of_the_command() {
    let facts = Facts::embedded();
    let cases = [
        (
            "FROM python:3.12-slim\nRUN set -e; \\\n    pip  install -q torch==2.9.1  # newest\n",
            "CD0737",
            "FROM python:3.12-slim\nRUN set -e; \\\n    pip  install --no-cache-dir -q torch==2.9.1  # newest\n",
        ),
        (
            "FROM python:3.11-slim\nRUN pip install --no-cache-dir tensorflow-gpu==2.15.0\n",
            "CD0741",
            "FROM python:3.11-slim\nRUN pip install --no-cache-dir 'tensorflow[and-cuda]==2.15.0'\n",
        ),
        (
            "# for: H100\nFROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.0.1+cu117 torchvision==0.15.2+cu117 -f https://download.pytorch.org/whl/torch_stable.html\n",
            "CD0501",
            "# for: H100\nFROM python:3.11-slim\nRUN pip install --no-cache-dir torch==2.0.1+cu118 torchvision==0.15.2+cu118 -f https://download.pytorch.org/whl/torch_stable.html\n",
        ),
        (
            "FROM python:3.12-slim\nRUN pip install --no-cache-dir torch>=2.4,<3 && pip check\n",
            "CD0744",
            "FROM python:3.12-slim\nRUN pip install --no-cache-dir 'torch>=2.4,<3' && pip check\n",
        ),
    ];
    for (before, code, after) in cases {
        let own: Vec<_> = findings(&facts, before).into_iter().filter(|one| one.code == code).collect();
        assert_eq!(cudock_lint::apply(before, &own).text, after, "{code}");
    }
}
