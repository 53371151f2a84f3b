//! Near misses and further cases of the rules about stages.

use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity};
use cudock_lint::{LintOptions, lint};
use cudock_manifests::Files;

use crate::examples::findings;

fn of_stages(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.code).filter(|code| ("CD0712".."CD0726").contains(code)).collect()
}

fn codes(text: &str) -> Vec<&'static str> {
    of_stages(&findings(&Facts::embedded(), text))
}

/// A build stage on `devel`, and a last stage that copies `/app`.
fn two_stages(build: &str, compile: &str, last: &str) -> String {
    format!(
        "FROM {build} AS build\nWORKDIR /src\nCOPY . .\nRUN {compile}\nFROM {last}\nCOPY --from=build /app /app\n"
    )
}

const DEVEL: &str = "nvidia/cuda:12.4.1-devel-ubuntu22.04";

#[test]
fn a_devel_image_is_reported_unless_something_needs_it() {
    let cases: &[(&str, &[&str])] = &[
        // Certain.
        (
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN pip install torch==2.6.0\nCMD [\"python3\", \"serve.py\"]\n",
            &["CD0712"],
        ),
        (
            "FROM pytorch/pytorch:2.6.0-cuda12.6-cudnn9-devel\nRUN pip install fastapi==0.115.0\nCMD [\"python\", \"serve.py\"]\n",
            &["CD0712"],
        ),
        // Something compiles, or may.
        (
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN apt-get install -y cmake\nCMD [\"python3\", \"serve.py\"]\n",
            &["CD0725"],
        ),
        // It compiles at run time, or may, or people work in it.
        (
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN pip install flash-attn==2.7.0\nCMD [\"python3\", \"serve.py\"]\n",
            &[],
        ),
        (
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nCOPY . .\nRUN pip install -r requirements.txt\nCMD [\"python3\", \"serve.py\"]\n",
            &[],
        ),
        (
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN pip install deepspeed==0.16.0\nCMD [\"python3\", \"train.py\"]\n",
            &[],
        ),
        ("FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN pip install torch==2.6.0\nCMD [\"bash\"]\n", &[]),
        (
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN pip install torch==2.6.0\nCMD jupyter lab --ip 0.0.0.0\n",
            &[],
        ),
        ("FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nCOPY . .\nCMD make run\n", &[]),
        ("FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\n", &[]),
        // Another flavor, another image.
        (
            "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nRUN pip install torch==2.6.0\nCMD [\"python3\", \"serve.py\"]\n",
            &[],
        ),
        ("FROM somebody/image:1-devel\nRUN pip install torch==2.6.0\nCMD [\"python3\", \"serve.py\"]\n", &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(codes(text), *expected, "{text}");
    }
}

#[test]
fn savings_are_stated() {
    let facts = Facts::embedded();
    let text = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN pip install torch==2.6.0\nCMD [\"python3\", \"app.py\"]\n";
    let found = findings(&facts, text);
    let finding = found.iter().find(|finding| finding.code == "CD0712").unwrap();
    assert_eq!(finding.saves_bytes, Some(2576 << 20));
    assert!(finding.message.contains("at least 2.7 GB"), "{}", finding.message);
    assert!(finding.suggestions.is_empty(), "torch may call the image's compiler");
}

#[test]
fn what_a_program_links_to_decides_whether_it_runs() {
    let devel = DEVEL;
    let cases: &[(String, &[&str])] = &[
        (two_stages(devel, "nvcc -o /app main.cu", "nvidia/cuda:12.4.1-base-ubuntu22.04"), &[]),
        (
            two_stages(devel, "nvcc -o /app main.cu -lcublas_static", "nvidia/cuda:12.4.1-base-ubuntu22.04"),
            &[],
        ),
        (
            two_stages(
                devel,
                "nvcc -o /app main.cu -lcublas -lcudnn",
                "nvidia/cuda:12.4.1-runtime-ubuntu22.04",
            ),
            &["CD0716"],
        ),
        (
            two_stages(
                devel,
                "nvcc -o /app main.cu -lcublas -lcudnn",
                "nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04",
            ),
            &[],
        ),
        (two_stages(devel, "nvcc -o /app main.cu --cudart shared", "ubuntu:22.04"), &["CD0716"]),
        (two_stages(devel, "nvcc -o /app main.cu", "ubuntu:22.04"), &[]),
        (
            two_stages(devel, "g++ -o /app main.o -l cufft", "nvidia/cuda:12.4.1-base-ubuntu22.04"),
            &["CD0716"],
        ),
        (two_stages(devel, "nvcc -o /app main.cu $LIBS", "nvidia/cuda:12.4.1-base-ubuntu22.04"), &[]),
        (two_stages(devel, "nvcc -c -o /app main.cu -lcublas", "nvidia/cuda:12.4.1-base-ubuntu22.04"), &[]),
        (
            two_stages(devel, "nvcc -o app main.cu -lcublas", "nvidia/cuda:12.4.1-base-ubuntu22.04"),
            &["CD0717"],
        ),
        (
            two_stages(devel, "nvcc -o /app main.cu -lcublas", "nvidia/cuda:12.4.1-base-ubuntu22.04")
                + "RUN apt-get update && apt-get install -y --no-install-recommends libcublas-12-4\n",
            &[],
        ),
        (
            two_stages(devel, "nvcc -o /app main.cu -lcublas", "nvidia/cuda:12.4.1-base-ubuntu22.04")
                + "COPY --from=build /usr/local/cuda/lib64/libcublas.so.12 /usr/lib/\n",
            &[],
        ),
        // More than it links to.
        (
            two_stages(devel, "nvcc -o /app main.cu", "nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04"),
            &["CD0722"],
        ),
        (
            two_stages(
                devel,
                "nvcc -o /app main.cu -lcurand",
                "nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04",
            ),
            &["CD0720"],
        ),
        (
            two_stages(devel, "nvcc -o /app main.cu", "nvidia/cuda:12.4.1-runtime-ubuntu22.04")
                + "COPY libx.so /usr/lib/\n",
            &[],
        ),
        (
            two_stages(devel, "nvcc -o /app main.cu", "nvidia/cuda:12.4.1-runtime-ubuntu22.04")
                + "RUN pip install numpy==2.0.0\n",
            &[],
        ),
        (two_stages(devel, "make", "nvidia/cuda:12.4.1-runtime-ubuntu22.04"), &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(codes(text), *expected, "{text}");
    }
}

#[test]
fn a_program_runs_on_its_own_or_a_newer_system() {
    let devel = DEVEL;
    let cases: &[(String, &[&str])] = &[
        (two_stages(devel, "nvcc -o /app a.cu", "nvidia/cuda:12.4.1-base-ubuntu20.04"), &["CD0714"]),
        (two_stages(devel, "nvcc -o /app a.cu", "debian:12-slim"), &[]),
        (two_stages(devel, "nvcc -o /app a.cu", "debian:bullseye"), &["CD0714"]),
        (
            two_stages(
                devel,
                "cmake -B /app -S . && cmake --build /app",
                "nvidia/cuda:12.4.1-base-ubuntu20.04",
            ),
            &["CD0714"],
        ),
        (two_stages(devel, "nvcc -o /other a.cu", "nvidia/cuda:12.4.1-base-ubuntu20.04"), &["CD0717"]),
        (two_stages(devel, "nvcc -o /app a.cu", "somebody/image:1"), &[]),
        (two_stages("ubuntu:22.04", "gcc -o /app a.c", "alpine:3.20"), &[]),
        (two_stages(devel, "nvcc -o /app a.cu", "python:3.12-alpine"), &["CD0715"]),
        (two_stages(devel, "nvcc -o /app a.cu", "alpine:3.20") + "RUN apk add --no-cache gcompat\n", &[]),
        // The CUDA runtime is linked statically, and libcurand has one name in all majors.
        (two_stages(devel, "nvcc -o /app a.cu -lcurand", "nvidia/cuda:11.8.0-runtime-ubuntu22.04"), &[]),
        (
            two_stages(devel, "nvcc -o /app a.cu -lcufft", "nvidia/cuda:11.8.0-runtime-ubuntu22.04"),
            &["CD0713"],
        ),
        (two_stages(devel, "nvcc -o /app a.cu -lcufft", "nvidia/cuda:12.9.1-runtime-ubuntu22.04"), &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(codes(text), *expected, "{text}");
    }
}

#[test]
fn within_one_generation_an_older_glibc_is_a_warning() {
    let facts = Facts::embedded();
    let severity = |last: &str, build: &str| {
        let found = findings(&facts, &two_stages(build, "gcc -o /app a.c", last));
        found.iter().find(|finding| finding.code == "CD0714").map(|finding| finding.severity)
    };
    assert_eq!(severity("ubuntu:22.04", "ubuntu:24.04"), Some(Severity::Warning));
    assert_eq!(severity("ubuntu:20.04", "ubuntu:22.04"), Some(Severity::Error));
    assert_eq!(severity("ubuntu:18.04", "ubuntu:20.04"), Some(Severity::Warning));
}

#[test]
fn copies_are_from_stages_and_paths_that_exist() {
    let cases: &[(&str, &[&str])] = &[
        ("FROM a:1 AS build\nFROM b:1\nCOPY --from=bulid /x /x\n", &["CD0721", "CD0718"]),
        ("FROM a:1 AS build\nFROM b:1\nCOPY --from=BUILD /x /x\n", &[]),
        ("FROM a:1\nFROM b:1\nCOPY --from=0 /x /x\n", &[]),
        ("FROM a:1\nFROM b:1\nCOPY --from=2 /x /x\n", &["CD0721", "CD0718"]),
        ("FROM a:1\nCOPY --from=busybox /x /x\n", &[]),
        ("FROM a:1\nCOPY --from=ghcr.io/astral-sh/uv:0.5 /uv /bin/\n", &[]),
        ("FROM a:1 AS deps\nCOPY --from=models /x /x\n", &[]),
        ("FROM a:1\nCOPY --from=late /x /x\nFROM b:1 AS late\n", &["CD0721", "CD0718"]),
        // `/out` may come from the project's build, from a relative path at the root, or from the image.
        ("FROM ubuntu:22.04 AS build\nWORKDIR /src\nRUN make\nFROM b:1\nCOPY --from=build /out/x /x\n", &[]),
        ("FROM ubuntu:22.04 AS build\nRUN mkdir out\nFROM b:1\nCOPY --from=build /out/x /x\n", &[]),
        (
            "FROM somebody/image:1 AS build\nWORKDIR /src\nRUN touch a\nFROM b:1\nCOPY --from=build /out/x /x\n",
            &[],
        ),
        (
            "FROM ubuntu:22.04 AS build\nWORKDIR /src\nRUN touch a\nFROM b:1\nCOPY --from=build /out/x /x\n",
            &["CD0717"],
        ),
        (
            "FROM ubuntu:22.04 AS build\nWORKDIR /src\nRUN cp a /out\nFROM b:1\nCOPY --from=build /out /x\n",
            &[],
        ),
        (
            "FROM ubuntu:22.04 AS build\nWORKDIR /src\nRUN touch a\nFROM b:1\nCOPY --from=build /usr/x /x\n",
            &[],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(codes(text), *expected, "{text}");
    }
}

#[test]
fn unused_stages_and_tools_are_distinguished_from_others() {
    let tools = |more: &str| {
        two_stages(DEVEL, "nvcc -o /app a.cu", "nvidia/cuda:12.4.1-base-ubuntu22.04")
            + "RUN apt-get update && apt-get install -y --no-install-recommends gcc-12\n"
            + more
    };
    let cases: &[(String, &[&str])] = &[
        (tools(""), &["CD0719"]),
        (tools("RUN pip install triton==3.0.0\n"), &[]),
        (tools("RUN ./configure\n"), &[]),
        (tools("RUN apt-get purge -y gcc-12\n"), &[]),
        ("FROM a:1 AS builder\nFROM b:1\n".to_owned(), &["CD0721"]),
        ("FROM a:1 AS dev\nFROM b:1\n".to_owned(), &[]),
        ("ARG K=cpu\nFROM a:1 AS build-cpu\nFROM a:2 AS build-gpu\nFROM build-${K}\n".to_owned(), &[]),
        ("FROM a:1 AS build\nFROM build AS test\nFROM b:1\n".to_owned(), &[]),
        ("FROM a:1 AS build\nFROM b:1\nRUN --mount=type=bind,from=build,target=/b true\n".to_owned(), &[]),
        (
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build\nFROM ubuntu:22.04\nCOPY --from=build /usr/local/cuda-12.4/ /usr/local/cuda\n"
                .to_owned(),
            &["CD0723"],
        ),
        (
            "FROM ubuntu:22.04\nCOPY --from=nvidia/cuda:12.4.1-runtime-ubuntu22.04 /usr/local/cuda /usr/local/cuda\n".to_owned(),
            &[],
        ),
        (
            "FROM ubuntu:22.04\nCOPY --from=nvidia/cuda:12.4.1-devel-ubuntu22.04 /usr/local/cuda /usr/local/cuda\nCMD [\"bash\"]\n"
                .to_owned(),
            &[],
        ),
        ("FROM python:3.11 AS b\nFROM python:3.11-slim\nCOPY --from=b /usr/local/lib/python3.11 /usr/local/lib/python3.11\n".to_owned(), &[]),
        ("FROM python:3.11 AS b\nFROM ubuntu:22.04\nCOPY --from=b /usr/local/lib/python3.11 /usr/local/lib/python3.11\n".to_owned(), &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(codes(text), *expected, "{text}");
    }
}

struct OneFile(&'static str, &'static str);

impl Files for OneFile {
    fn text(&self, path: &str) -> Option<String> {
        (path == self.0).then(|| self.1.to_owned())
    }

    fn below(&self, _: &str) -> Vec<String> {
        vec![self.0.to_owned()]
    }
}

#[test]
fn libraries_are_read_from_the_files_of_cmake() {
    let facts = Facts::embedded();
    let text =
        two_stages(DEVEL, "cmake -B /app && cmake --build /app", "nvidia/cuda:12.4.1-base-ubuntu22.04");
    let codes = |lists: &'static str| {
        let files = OneFile("CMakeLists.txt", lists);
        let options = LintOptions { files: &files, ..LintOptions::new(&facts) };
        of_stages(&lint("Dockerfile", &text, &options).unwrap())
    };
    assert_eq!(codes("target_link_libraries(app PRIVATE\n  CUDA::cublas # fast\n)\n"), ["CD0716"]);
    assert_eq!(codes("target_link_libraries(app CUDA::cublas_static CUDA::cudart)\n"), [""; 0]);
    assert_eq!(codes("if(FAST)\n  target_link_libraries(app CUDA::cublas)\nendif()\n"), [""; 0]);
    assert_eq!(codes("# target_link_libraries(app CUDA::cublas)\n"), [""; 0]);
}
