//! Near misses of the rules for targets.

use cudock_facts::Facts;

use crate::codes_between;
use crate::examples::findings;

#[test]
fn near_misses() {
    let cases: &[(&str, &[&str])] = &[
        // GPU queries
        ("FROM python:3.12-slim\nRUN nvidia-smi\n", &["CD0730"]),
        ("FROM python:3.12-slim\nRUN if nvidia-smi; then echo gpu; fi\n", &[]),
        ("FROM python:3.12-slim\nRUN command -v nvidia-smi || echo no driver\n", &[]),
        ("FROM python:3.12-slim\nRUN --device=nvidia.com/gpu=all nvidia-smi\n", &[]),
        ("FROM python:3.12-slim\nRUN echo 'nvidia-smi' >> run.sh\nCMD [\"nvidia-smi\"]\n", &[]),
        ("FROM python:3.12-slim\nHEALTHCHECK CMD python -c 'import torch; torch.cuda.is_available()'\n", &[]),
        (
            "FROM python:3.12-slim\nRUN python3 -c \"import tensorflow as tf; print(tf.config.list_physical_devices('GPU'))\"\n",
            &["CD0730"],
        ),
        // architectures
        ("FROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nENV TORCH_CUDA_ARCH_LIST=native\n", &["CD0726"]),
        ("FROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nRUN CUDAARCHS=native cmake -B build\n", &["CD0726"]),
        ("FROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nRUN nvcc -arch native app.cu\n", &["CD0726"]),
        ("FROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nRUN make CFLAGS=-march=native\n", &[]),
        (
            "FROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nENV NVCC_FLAGS=\"-gencode arch=compute_90,code=sm_90a -O3\"\n",
            &["CD0727"],
        ),
        (
            "FROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nRUN nvcc -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90a,code=sm_90a app.cu\n",
            &[],
        ),
        // extensions
        (
            "FROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nARG TORCH_CUDA_ARCH_LIST\nRUN pip install mmcv==2.2.0\n",
            &[],
        ),
        ("FROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nRUN pip install flash-attn==2.8.3\n", &[]),
        (
            "FROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nRUN TORCH_CUDA_ARCH_LIST=8.0 pip install mmcv==2.2.0\n",
            &[],
        ),
        (
            "# for: A100\nFROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=\"7.5 8.0\"\n",
            &[],
        ),
        ("# for: A100\nFROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=$LIST\n", &[]),
        ("# for: A10\nFROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=8.0\n", &[]),
        // no GPU
        (
            "# for: cpu\nFROM python:3.12-slim\nRUN pip install --no-cache-dir onnxruntime-gpu==1.22.0\n",
            &["CD0729"],
        ),
        (
            "# for: cpu\nFROM python:3.12-slim\nRUN pip install --no-cache-dir onnxruntime==1.22.0 torchvision\n",
            &[],
        ),
        (
            "# for: cpu\nFROM --platform=linux/arm64 python:3.12-slim\nRUN pip install --no-cache-dir torch==2.5.1\n",
            &[],
        ),
        ("# for: H100\nFROM python:3.12-slim\nRUN pip install --no-cache-dir torch==2.9.1\n", &[]),
        (
            "# for: cpu\nFROM python:3.12-slim\nRUN uv pip install --system torch==2.9.1 --torch-backend auto\n",
            &[],
        ),
        ("FROM python:3.12-slim\nENV UV_TORCH_BACKEND=auto\n", &["CD0732"]),
    ];
    for (text, expected) in cases {
        assert_eq!(codes_between(text, "CD0726", "CD0735"), *expected, "{text}");
    }
}

#[test]
fn verdicts_of_the_last_stage_are_at_the_text_that_decides() {
    let facts = Facts::embedded();
    let cases = [
        (
            "# for: B200, driver 580\nFROM nvidia/cuda:12.4.1-base-ubuntu22.04\nRUN apt-get update && \\\n    pip install numpy torch==2.4.1\n",
            "CD0501",
            "torch==2.4.1",
        ),
        (
            "# for: T4, driver 525\nFROM python:3.12-slim AS a\nFROM nvidia/cuda:12.6.3-base-ubuntu22.04 AS b\nFROM b\n",
            "CD0602",
            "nvidia/cuda:12.6.3-base-ubuntu22.04",
        ),
        (
            "# for: H100, driver 580\nFROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nRUN nvcc -gencode arch=compute_80,code=sm_80 -o app app.cu\n",
            "CD0501",
            "nvcc -gencode arch=compute_80,code=sm_80 -o app app.cu",
        ),
    ];
    for (text, code, expected) in cases {
        let found = findings(&facts, text);
        let finding =
            found.iter().find(|finding| finding.code == code).unwrap_or_else(|| panic!("{code}: {found:?}"));
        let span = finding.location.as_ref().unwrap().region.span;
        assert_eq!(&text[span.bytes()], expected, "{code}");
    }
}

#[test]
fn what_the_file_does_not_determine_is_not_judged() {
    let texts = [
        // Any project can be behind these, with GPU code or without.
        "# for: H100, driver 580\nFROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=8.0\nRUN pip install --no-cache-dir git+https://github.com/openai/CLIP.git && python setup.py install\n",
        // A build of somebody's own.
        "# for: H100, driver 580\nFROM python:3.10-slim\nRUN pip install --no-cache-dir /tmp/torch-2.2.0a0+git8ac9b20-cp310-cp310-linux_x86_64.whl\n",
    ];
    for text in texts.iter().copied().chain([CHOICE]) {
        assert_eq!(codes_between(text, "CD0400", "CD0599"), Vec::<&str>::new(), "{text}");
    }
}

const CHOICE: &str = "# for: H100, driver 580\nFROM python:3.11-slim\nARG GPU\nRUN if [ -n \"$GPU\" ]; then pip install torch==2.0.1; else pip install torch==2.0.1 --index-url https://download.pytorch.org/whl/cpu; fi\n";
