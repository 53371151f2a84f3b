//! Near misses of the rules about drivers, libraries, variables, layers and what is started.

use cudock_facts::Facts;
use cudock_lint::{LintOptions, apply, lint};

const BASE: &str = "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\n";
const DEVEL: &str = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\n";
const UBUNTU: &str = "FROM ubuntu:22.04\n";
const TORCH: &str = "FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime\n";

/// A list of these codes, in the order of the file.
fn codes(text: &str, of: &[&str]) -> Vec<&'static str> {
    let facts = Facts::embedded();
    let findings = lint("Dockerfile", text, &LintOptions::new(&facts)).unwrap();
    findings.iter().map(|finding| finding.code).filter(|code| of.contains(code)).collect()
}

fn check(code: &str, cases: &[(&str, &str, usize)]) {
    for (base, rest, expected) in cases {
        let text = format!("{base}{rest}\n");
        assert_eq!(codes(&text, &[code]).len(), *expected, "{code}:\n{text}");
    }
}

fn fixed(text: &str, code: &str) -> String {
    let facts = Facts::embedded();
    let findings = lint("Dockerfile", text, &LintOptions::new(&facts)).unwrap();
    let own: Vec<_> = findings.into_iter().filter(|finding| finding.code == code).collect();
    apply(text, &own).text
}

#[test]
fn only_the_driver_itself_counts_as_the_driver() {
    check(
        "CD0758",
        &[
            (UBUNTU, "RUN apt-get install -y libnvidia-compute-535:amd64", 1),
            (UBUNTU, "RUN apt-get install -y cuda-12-4 cuda-runtime-12-4 cuda", 3),
            (
                UBUNTU,
                "RUN apt-get install -y cuda-compat-12-4 cuda-libraries-12-4 cuda-nvcc-12-4 cuda-keyring",
                0,
            ),
            (UBUNTU, "RUN sh ./NVIDIA-Linux-x86_64-535.54.03.run --no-kernel-module", 1),
            (UBUNTU, "RUN sh cuda_12.4.1_550.54.15_linux.run --silent --toolkit", 0),
            (UBUNTU, "RUN sh cuda_12.4.1_550.54.15_linux.run --silent --driver --toolkit", 1),
            (UBUNTU, "RUN if [ \"$D\" ]; then apt-get install -y nvidia-utils-535; fi", 0),
            (UBUNTU, "RUN apt-get install -y nvidia-driver-535\nENTRYPOINT [\"nvidia-driver\", \"init\"]", 0),
            (
                "FROM ubuntu:22.04 AS build\nRUN apt-get install -y libnvidia-compute-535\n",
                "FROM ubuntu:22.04",
                0,
            ),
        ],
    );
}

#[test]
fn cuda_on_a_cuda_image_is_judged_by_version_and_flavor() {
    let cudnn = "FROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04\n";
    check(
        "CD0759",
        &[
            (DEVEL, "RUN apt-get install -y cuda-nvcc-12-4", 1),
            (DEVEL, "RUN apt-get install -y cuda-nsight-systems-12-4 cuda-compat-12-6 libnccl-dev", 0),
            (BASE, "RUN apt-get install -y cuda-toolkit-12-4", 0),
            (BASE, "RUN apt-get install -y cuda-toolkit-11-8", 1),
            (BASE, "RUN apt-get install -y nvidia-cuda-toolkit", 1),
            (BASE, "RUN sh cuda_11.8.0_520.61.05_linux.run --toolkit", 1),
            (BASE, "RUN apt-get install -y cuda-toolkit-${VERSION}", 0),
            (cudnn, "RUN apt-get install -y libcudnn9-cuda-12", 1),
            (cudnn, "RUN apt-get install -y libcudnn9-dev-cuda-12", 0),
            (UBUNTU, "RUN apt-get install -y cuda-toolkit-12-4", 0),
            (TORCH, "RUN apt-get install -y cuda-toolkit-12-4", 0),
        ],
    );
}

#[test]
fn the_key_counts_where_the_repository_is_used() {
    let repository = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2004/x86_64";
    let key = format!("RUN apt-key adv --fetch-keys {repository}/7fa2af80.pub");
    let list = format!("RUN echo 'deb {repository} /' > /etc/apt/sources.list.d/cuda.list");
    let new = format!("RUN apt-key adv --fetch-keys {repository}/3bf863cc.pub");
    check(
        "CD0761",
        &[
            (UBUNTU, &format!("{key}\n{list}"), 1),
            (UBUNTU, &key, 0),
            (UBUNTU, &format!("{key}\n{new}\n{list}"), 0),
            (BASE, &format!("{key}\n{list}"), 0),
            (UBUNTU, &format!("ADD {repository}/7fa2af80.pub /key\n{list}"), 1),
            (UBUNTU, &format!("RUN apt-key del 7fa2af80\n{list}"), 0),
            (
                UBUNTU,
                &format!("RUN apt-key add /var/cuda-repo-ubuntu2004-11-4-local/7fa2af80.pub\n{list}"),
                0,
            ),
        ],
    );
    let text = format!("{UBUNTU}{key}\n{list}\n");
    assert_eq!(fixed(&text, "CD0761"), text.replace("7fa2af80", "3bf863cc"));
}

#[test]
fn the_retired_repository_is_recognized_by_its_key() {
    let repository = "https://developer.download.nvidia.com/compute/machine-learning/repos/ubuntu1804/x86_64";
    check(
        "CD0762",
        &[
            (TORCH, &format!("RUN apt-key adv --fetch-keys {repository}/7fa2af80.pub"), 0),
            (
                UBUNTU,
                &format!("ADD {repository}/nvidia-machine-learning-repo-ubuntu1804_1.0.0-1_amd64.deb /"),
                1,
            ),
        ],
    );
    check(
        "CD0763",
        &[
            (BASE, "RUN rm /etc/apt/sources.list.d/cuda.list", 1),
            (TORCH, "RUN rm /etc/apt/sources.list.d/cuda.list", 0),
        ],
    );
}

#[test]
fn an_upgrade_without_a_hold_is_found_on_cuda_images_only() {
    check(
        "CD0774",
        &[
            (BASE, "RUN apt-get update && apt-get dist-upgrade -y", 1),
            (UBUNTU, "RUN apt-get update && apt-get upgrade -y", 0),
            (BASE, "RUN pip install --upgrade pip && apt-get install -y --only-upgrade openssl", 0),
            ("FROM nvidia/cuda:12.4.1-base-rockylinux9\n", "RUN dnf -y update", 1),
            ("FROM nvidia/cuda:12.4.1-base-rockylinux9\n", "RUN dnf -y update openssl", 0),
        ],
    );
    check(
        "CD0773",
        &[
            (BASE, "RUN rm -rf /usr/local/cuda-12.4/compat", 1),
            (BASE, "RUN dpkg -r cuda-compat-12-4", 1),
            (UBUNTU, "RUN apt-get remove -y cuda-compat-12-4", 0),
        ],
    );
}

#[test]
fn library_paths_keep_what_the_base_image_sets() {
    check(
        "CD0764",
        &[
            (BASE, "ENV LD_LIBRARY_PATH /a:/usr/local/nvidia/lib64", 0),
            (BASE, "ENV LD_LIBRARY_PATH=/a:${LD_LIBRARY_PATH:-}", 0),
            (BASE, "ENV LD_LIBRARY_PATH=/a:$OTHER", 0),
            (BASE, "ENV LD_LIBRARY_PATH=/a\nENV LD_LIBRARY_PATH=/b:$LD_LIBRARY_PATH", 1),
            // The images of 12.8.1 to 12.9.1 set a path that is in the cache anyway.
            ("FROM nvidia/cuda:12.9.1-base-ubuntu22.04\n", "ENV LD_LIBRARY_PATH=/a", 0),
            (UBUNTU, "ENV LD_LIBRARY_PATH=/a", 0),
            ("FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nENV LD_LIBRARY_PATH=/a\n", "FROM ubuntu:22.04", 0),
        ],
    );
    let cases = [
        ("ENV LD_LIBRARY_PATH /a", "ENV LD_LIBRARY_PATH /a:${LD_LIBRARY_PATH}"),
        ("ENV LD_LIBRARY_PATH='/a'", "ENV LD_LIBRARY_PATH='/a'"),
        ("ENV LD_LIBRARY_PATH=\"/a:\" B=1", "ENV LD_LIBRARY_PATH=\"/a:${LD_LIBRARY_PATH}\" B=1"),
    ];
    for (before, after) in cases {
        assert_eq!(fixed(&format!("{BASE}{before}\n"), "CD0764"), format!("{BASE}{after}\n"));
    }
}

#[test]
fn stubs_are_taken_out_of_the_path() {
    let cases = [
        ("ENV LD_LIBRARY_PATH=/a:/c/stubs:/b", "ENV LD_LIBRARY_PATH=/a:/b"),
        ("ENV LD_LIBRARY_PATH=\"/a:$CUDA_HOME/stubs/\"", "ENV LD_LIBRARY_PATH=\"/a\""),
        ("ENV LD_LIBRARY_PATH=/c/stubs", "ENV LD_LIBRARY_PATH=/c/stubs"),
        ("ENV LD_LIBRARY_PATH=/c/stubs${X:+:$X}:/d/stubs", "ENV LD_LIBRARY_PATH=/c/stubs${X:+:$X}:/d/stubs"),
    ];
    for (before, after) in cases {
        check("CD0765", &[(UBUNTU, before, 1)]);
        assert_eq!(fixed(&format!("{UBUNTU}{before}\n"), "CD0765"), format!("{UBUNTU}{after}\n"));
    }
    check(
        "CD0766",
        &[
            (DEVEL, "RUN cp /usr/local/cuda/lib64/stubs/libcuda.so /usr/lib/libcuda.so.1", 1),
            (
                DEVEL,
                "RUN ln -s /c/stubs/libcuda.so /usr/lib/libcuda.so.1 && make && rm /usr/lib/libcuda.so.1",
                0,
            ),
            (DEVEL, "RUN ln -s /c/stubs/libcuda.so /usr/lib/libcuda.so.1\nRUN rm -f /usr/lib/libcuda*", 0),
            (
                DEVEL,
                "RUN echo /usr/local/cuda/lib64/stubs > /etc/ld.so.conf.d/z-cuda-stubs.conf && ldconfig",
                1,
            ),
            (DEVEL, "RUN ls /usr/local/cuda/lib64/stubs/libcuda.so /usr/lib", 0),
        ],
    );
}

#[test]
fn copied_libraries_are_found_by_the_loader() {
    let build = |link: &str| {
        format!("FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS b\nRUN nvcc -o /a /a.cu {link}\n{BASE}")
    };
    let plain = build("-lfilter");
    let copy = "COPY --from=b /libfilter.so /opt/lib/";
    check(
        "CD0767",
        &[
            (&plain, copy, 1),
            (&plain, "COPY --from=b /libfilter.so.1 /usr/lib/libfilter.so.1", 0),
            (&plain, &format!("{copy}\nENV LD_LIBRARY_PATH=/opt/lib:$LD_LIBRARY_PATH"), 0),
            (&plain, &format!("{copy}\nRUN echo /opt/lib > /etc/ld.so.conf.d/a.conf && ldconfig"), 0),
            (&plain, &format!("{copy}\nRUN echo /opt/lib > /etc/ld.so.conf.d/a.conf"), 1),
            (&plain, &format!("{copy}\nRUN ldconfig /opt/lib"), 0),
            (&plain, &format!("{copy}\nENTRYPOINT [\"/start.sh\"]"), 0),
            (&plain, &format!("{copy}\nCMD LD_LIBRARY_PATH=/opt/lib /a"), 0),
            (&plain, "COPY --from=b /libother.so /opt/lib/", 0),
            (&build("-lfilter -Xlinker -rpath=/opt/lib"), copy, 0),
        ],
    );
}

#[test]
fn variables_of_the_toolkit_are_judged_by_value() {
    check(
        "CD0604",
        &[
            (BASE, "ENV NVIDIA_VISIBLE_DEVICES=none", 1),
            (BASE, "ENV NVIDIA_VISIBLE_DEVICES=void\nENV NVIDIA_VISIBLE_DEVICES=all", 0),
            (BASE, "ENV NVIDIA_VISIBLE_DEVICES=$DEVICES", 0),
            (UBUNTU, "ENV NVIDIA_VISIBLE_DEVICES=void", 0),
        ],
    );
    check(
        "CD0605",
        &[
            (BASE, "ENV NVIDIA_DRIVER_CAPABILITIES=graphics", 1),
            (BASE, "ENV NVIDIA_DRIVER_CAPABILITIES=all", 0),
            (
                BASE,
                "ENV NVIDIA_DRIVER_CAPABILITIES=${NVIDIA_DRIVER_CAPABILITIES:+$NVIDIA_DRIVER_CAPABILITIES,}video",
                0,
            ),
            (UBUNTU, "ENV NVIDIA_DRIVER_CAPABILITIES=graphics,utility", 0),
        ],
    );
    check(
        "CD0768",
        &[
            (UBUNTU, "ENV NVIDIA_VISIBLE_DEVICES=0,1", 1),
            (UBUNTU, "ENV NVIDIA_VISIBLE_DEVICES=void", 0),
            (UBUNTU, "ENV CUDA_VISIBLE_DEVICES=", 1),
            (UBUNTU, "ENV CUDA_VISIBLE_DEVICES=$GPU", 0),
            (UBUNTU, "RUN CUDA_VISIBLE_DEVICES=0 python test.py", 0),
        ],
    );
    check(
        "CD0769",
        &[
            (BASE, "ENV A=1 NVIDIA_DRIVER_CAPABILITIES=utility,compute", 1),
            (BASE, "ENV NVIDIA_DRIVER_CAPABILITIES=utility,compute,video", 0),
            (TORCH, "ENV NVIDIA_VISIBLE_DEVICES=all", 0),
        ],
    );
    check(
        "CD0770",
        &[
            (BASE, "RUN apt-get install -y vulkan-tools", 1),
            (BASE, "RUN apt-get install -y ffmpeg libgl1 libegl1", 0),
            (UBUNTU, "RUN apt-get install -y vulkan-tools", 0),
            (UBUNTU, "ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility\nRUN apt-get install -y libvulkan1", 0),
            (UBUNTU, "ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility MUJOCO_GL=egl", 1),
            (UBUNTU, "ENV NVIDIA_DRIVER_CAPABILITIES=all MUJOCO_GL=egl", 0),
            (UBUNTU, "ENV NVIDIA_DRIVER_CAPABILITIES=$CAPS MUJOCO_GL=egl", 0),
        ],
    );
    check(
        "CD0771",
        &[
            (BASE, "ENV NVIDIA_DRIVER_CAPABILITIES=all MUJOCO_GL=egl", 0),
            (TORCH, "ENV NVIDIA_DRIVER_CAPABILITIES=all", 0),
        ],
    );
    check(
        "CD0772",
        &[
            (BASE, "ENV NVIDIA_DISABLE_REQUIRE=false", 0),
            (UBUNTU, "ENV NVIDIA_DISABLE_REQUIRE=true", 1),
            (UBUNTU, "ENV NVIDIA_DISABLE_REQUIRE=true NVIDIA_VISIBLE_DEVICES=void", 0),
            (BASE, "ENV NVIDIA_REQUIRE_CUDA=", 1),
            (BASE, "ENV NVIDIA_REQUIRE_CUDA=\"cuda>=11.0\"", 1),
            (BASE, "ENV NVIDIA_REQUIRE_CUDA=\"cuda>=13.0 brand=tesla,driver>=570\"", 1),
            (UBUNTU, "ENV NVIDIA_REQUIRE_CUDA=\"cuda>=11.0\"", 0),
        ],
    );
    let text = format!("{BASE}ENV CUDA_VISIBLE_DEVICES=0 A=1\n");
    assert_eq!(fixed(&text, "CD0768"), text, "an ENV with other variables is not deleted");
}

#[test]
fn apt_is_judged_per_layer() {
    check(
        "CD0775",
        &[
            (UBUNTU, "RUN apt-get install -y git curl", 0),
            (UBUNTU, "RUN apt install -y python3-pip", 1),
            (UBUNTU, "RUN apt install -y python3-pip build-essential", 0),
            (DEVEL, "RUN apt install -y python3-pip", 0),
            (UBUNTU, "RUN apt-get install -y -o APT::Install-Recommends=false python3-pip", 0),
            (UBUNTU, "RUN <<EOF\napt-get install -y --no-install-recommends ffmpeg\nEOF", 0),
            ("FROM ubuntu:22.04 AS b\nRUN apt-get install -y ffmpeg\n", "FROM ubuntu:22.04", 0),
        ],
    );
    check(
        "CD0776",
        &[
            (UBUNTU, "RUN apt-get update && apt-get install -y git && rm -rf /var/lib/apt/lists/*", 0),
            (
                UBUNTU,
                "RUN <<EOF\napt-get update\napt-get install -y git\nrm -rf /var/lib/apt/lists/*\nEOF",
                0,
            ),
            (UBUNTU, "RUN apt-get update && apt-get install -y git\nRUN rm -rf /var/lib/apt/lists/*", 1),
            (UBUNTU, "RUN apt-get update && apt-get install -y git && apt-get clean", 1),
        ],
    );
    let text = format!("{UBUNTU}RUN apt-get update\nRUN apt-get install -y git\n");
    assert_eq!(fixed(&text, "CD0776"), text, "the second RUN needs the lists");
    let text = format!("{UBUNTU}RUN apt-get install -y ffmpeg git\n");
    assert_eq!(fixed(&text, "CD0775"), text, "git needs the certificates it recommends");
    let text = format!("{UBUNTU}RUN <<EOF\napt-get update\nEOF\n");
    assert_eq!(fixed(&text, "CD0776"), text, "a here-document is not edited");
}

#[test]
fn dependencies_are_installed_before_the_sources_are_copied() {
    check(
        "CD0777",
        &[
            (TORCH, "COPY . .\nRUN pip install -e . && pip install -r more.txt", 0),
            (
                TORCH,
                "COPY . .\nRUN --mount=type=cache,target=/root/.cache/pip pip install -r requirements.txt",
                0,
            ),
            (TORCH, "COPY . .\nRUN conda env create -f environment.yml", 1),
            (TORCH, "COPY ./src ./src\nRUN pip install -r src/requirements.txt", 0),
            (TORCH, "RUN pip install torch\nCOPY . .\nRUN pip install -r requirements.txt", 0),
            ("FROM python:3.12\n", "COPY . .\nRUN pip install -r requirements.txt", 0),
            ("FROM python:3.12\n", "COPY . .\nRUN pip install torch==2.5.1", 1),
        ],
    );
}

#[test]
fn secrets_are_found_and_never_printed() {
    let token = format!("hf_{}", "a1".repeat(17));
    check(
        "CD0779",
        &[
            (UBUNTU, "ENV NGC_API_KEY=abcdef123456", 1),
            (UBUNTU, "ENV HF_TOKEN=\"\" OPENAI_API_KEY=your-key-here WANDB_API_KEY=WANDB_API_KEY", 0),
            (UBUNTU, "ARG HF_TOKEN\nENV HF_TOKEN=$HF_TOKEN", 1),
            (UBUNTU, "ARG HF_TOKEN\nRUN echo no", 0),
            (UBUNTU, "ARG HF_TOKEN\nRUN echo $HF_TOKEN_FILE", 0),
            (UBUNTU, "ENV TOKENIZERS_PARALLELISM=false MAX_TOKENS=100000 NVIDIA_GPG_KEY=abcdef1234", 0),
            (UBUNTU, &format!("RUN hf auth login --token {token}"), 1),
            ("FROM ubuntu:22.04 AS b\nARG HF_TOKEN\nRUN echo $HF_TOKEN\n", "FROM ubuntu:22.04", 0),
        ],
    );
    let facts = Facts::embedded();
    let text = format!(
        "{TORCH}ENV HF_TOKEN={token}\nRUN hf auth login --token {token}\nCOPY . .\n\
        RUN git clone https://me:{token}@github.com/a/b && make && curl https://me:{token}@a.b/x.sh?t={token} | sh\n\
        RUN pip install --extra-index-url https://me:{token}@a.b -r requirements.txt\n"
    );
    let findings = lint("Dockerfile", &text, &LintOptions::new(&facts)).unwrap();
    assert!(findings.iter().filter(|finding| finding.code == "CD0779").count() == 5);
    assert!(findings.iter().all(|finding| !format!("{finding:?}").contains(&token)));
}

#[test]
fn downloads_are_judged_by_what_they_leave() {
    check(
        "CD0780",
        &[
            (UBUNTU, "RUN wget -qO- https://sh.rustup.rs | sudo bash -s -- -y", 1),
            (UBUNTU, "RUN curl https://sh.rustup.rs -sSf | sh -s -- -y --default-toolchain 1.85.1", 0),
            (UBUNTU, "RUN curl https://sh.rustup.rs -sSf | sh -s -- -y --default-toolchain ${RUST}", 0),
            (UBUNTU, "RUN curl -fsSL https://example.com/key.asc | gpg --dearmor -o /key.gpg", 0),
            (UBUNTU, "RUN curl -fsSL https://example.com/a.sh > a.sh; bash -n b.sh", 0),
        ],
    );
    check(
        "CD0781",
        &[
            (UBUNTU, "RUN wget -q https://example.com/sam_vit_h.pth?download=true", 1),
            (
                UBUNTU,
                "RUN python3 -c \"from huggingface_hub import snapshot_download; snapshot_download('a/b')\"",
                1,
            ),
            (UBUNTU, "RUN git clone https://huggingface.co/openai/whisper-large-v3", 1),
            (UBUNTU, "RUN git clone https://huggingface.co/spaces/a/b && hf auth whoami", 0),
            (UBUNTU, "RUN wget https://example.com/data.json && curl -O https://example.com/setup.bin", 0),
            (UBUNTU, "CMD [\"hf\", \"download\", \"a/b\"]", 0),
        ],
    );
    check(
        "CD0782",
        &[
            (UBUNTU, "RUN git clone https://github.com/a/b && cd b && git checkout abc && make", 0),
            (UBUNTU, "RUN git clone -b main https://github.com/a/b && cd b && pip install .", 1),
            (UBUNTU, "RUN git clone https://github.com/a/b", 0),
            (UBUNTU, "ARG V=main\nRUN git clone -b $V https://github.com/a/b && make -C b", 0),
            (UBUNTU, "RUN make && git clone https://github.com/a/b", 0),
        ],
    );
    check(
        "CD0783",
        &[
            (UBUNTU, "RUN wget https://a.b/cuda-repo-ubuntu2204-12-4-local_12.4.1_amd64.deb", 1),
            (UBUNTU, "RUN wget https://a.b/cuda-keyring_1.1-1_all.deb", 0),
            (
                UBUNTU,
                "RUN wget https://a.b/x.tar.gz -O /tmp/x.tar.gz\nRUN tar xf /tmp/x.tar.gz\nRUN rm -rf /tmp/*",
                1,
            ),
            (
                UBUNTU,
                "RUN wget https://a.b/x.tar.gz -O /tmp/x.tar.gz && rm -r /tmp/x.tar.gz\nRUN rm -rf /tmp/*",
                0,
            ),
            (UBUNTU, "RUN wget https://a.b/tool -O /tool\nRUN rm *.whl", 0),
            (UBUNTU, "RUN wget https://a.b/x.deb\nRUN rm *.deb", 1),
            (UBUNTU, "COPY a.whl /tmp/\nRUN pip install /tmp/a.whl && rm /tmp/a.whl", 1),
            (UBUNTU, "COPY a.py /tmp/\nRUN python /tmp/a.py && rm /tmp/a.py", 0),
            (UBUNTU, "RUN apt-get install -y g++\nRUN make && apt-get purge -y g++", 1),
            (UBUNTU, "RUN apt-get install -y g++ && make && apt-get purge -y g++", 0),
        ],
    );
}

#[test]
fn what_is_started_is_judged_for_servers() {
    check(
        "CD0778",
        &[
            (BASE, "CMD [\"python\", \"train.py\"]", 0),
            (BASE, "USER root\nCMD [\"python\", \"-m\", \"vllm.entrypoints.openai.api_server\"]", 1),
            ("FROM somebody/image:1\n", "CMD [\"vllm\", \"serve\"]", 0),
        ],
    );
    check(
        "CD0784",
        &[
            (BASE, "HEALTHCHECK --interval=60s --retries=10 CMD true\nCMD [\"vllm\", \"serve\"]", 0),
            (BASE, "HEALTHCHECK --start-period=1m30s --interval=5s CMD true\nCMD [\"vllm\", \"serve\"]", 1),
            (BASE, "HEALTHCHECK NONE\nCMD [\"vllm\", \"serve\"]", 0),
            (BASE, "HEALTHCHECK CMD true\nCMD [\"nginx\"]", 0),
            (BASE, "HEALTHCHECK --interval=$I CMD true\nCMD [\"vllm\", \"serve\"]", 0),
        ],
    );
    check(
        "CD0785",
        &[
            (BASE, "CMD [\"uvicorn\", \"app:app\"]", 0),
            (BASE, "CMD python train.py", 0),
            (BASE, "SHELL [\"/bin/bash\", \"-c\"]\nCMD uvicorn app:app", 0),
            ("FROM nvidia/cuda:12.4.1-base-rockylinux9\n", "CMD uvicorn app:app", 0),
            (BASE, "CMD cd /app && uvicorn app:app --port $PORT", 1),
        ],
    );
    let text = format!("{BASE}CMD uvicorn app:app --port $PORT\n");
    assert_eq!(fixed(&text, "CD0785"), text, "variables need the shell");
}
