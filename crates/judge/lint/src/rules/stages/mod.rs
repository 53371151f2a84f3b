//! Stages: what the last one carries along, what it copies, and whether that runs there.

mod copies;
mod devel;
mod flavors;
mod programs;
mod sources;

use cudock_facts::finding::Severity;

use crate::rule::Rule;

pub(super) static RULES: &[Rule] = &[
    Rule {
        code: "CD0712",
        name: "devel-in-final-stage",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -O3 -lcublas -o /app main.cu
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04
COPY --from=build /app /app
CMD [\"/app\"]
",
        good: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -O3 -lcublas -o /app main.cu
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
COPY --from=build /app /app
CMD [\"/app\"]
",
        check: devel::devel_in_final_stage,
    },
    Rule {
        code: "CD0713",
        name: "stages-differ-in-cuda",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -lcublas -o /app main.cu
FROM nvidia/cuda:11.8.0-runtime-ubuntu22.04
COPY --from=build /app /app
",
        good: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -o /app main.cu
FROM nvidia/cuda:11.8.0-runtime-ubuntu22.04
COPY --from=build /app /app
",
        check: copies::stages_differ_in_cuda,
    },
    Rule {
        code: "CD0714",
        name: "older-glibc-in-final-stage",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -o /app main.cu
FROM nvidia/cuda:12.4.1-base-ubuntu20.04
COPY --from=build /app /app
",
        good: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu20.04 AS build
COPY main.cu .
RUN nvcc -o /app main.cu
FROM nvidia/cuda:12.4.1-base-ubuntu22.04
COPY --from=build /app /app
",
        check: copies::older_glibc,
    },
    Rule {
        code: "CD0715",
        name: "musl-in-final-stage",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -o /app main.cu
FROM alpine:3.20
COPY --from=build /app /app
",
        good: "\
FROM golang:1.23-bookworm AS build
COPY . .
RUN go build -o /app .
FROM alpine:3.20
COPY --from=build /app /app
",
        check: copies::musl,
    },
    Rule {
        code: "CD0716",
        name: "library-missing-in-final-stage",
        severity: Severity::Error,
        also: &[],
        is_fixable: true,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -lcublas -o /app main.cu
FROM nvidia/cuda:12.4.1-base-ubuntu22.04
COPY --from=build /app /app
",
        good: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -lcublas -o /app main.cu
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
COPY --from=build /app /app
",
        check: flavors::library_missing,
    },
    Rule {
        code: "CD0717",
        name: "copied-path-not-created",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
WORKDIR /src
COPY main.cu .
RUN nvcc -o app main.cu
FROM nvidia/cuda:12.4.1-base-ubuntu22.04
COPY --from=build /output/app /app
",
        good: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
WORKDIR /src
COPY main.cu .
RUN nvcc -o app main.cu
FROM nvidia/cuda:12.4.1-base-ubuntu22.04
COPY --from=build /src/app /app
",
        check: copies::path_not_created,
    },
    Rule {
        code: "CD0718",
        name: "unknown-stage",
        severity: Severity::Error,
        also: &["DL3022"],
        is_fixable: true,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS builder
RUN touch /app
FROM nvidia/cuda:12.4.1-base-ubuntu22.04
COPY --from=buidler /app /app
",
        good: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS builder
RUN touch /app
FROM nvidia/cuda:12.4.1-base-ubuntu22.04
COPY --from=builder /app /app
",
        check: copies::unknown_stage,
    },
    Rule {
        code: "CD0719",
        name: "build-tools-in-final-stage",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -o /app main.cu
FROM nvidia/cuda:12.4.1-base-ubuntu22.04
RUN apt-get update && apt-get install -y --no-install-recommends build-essential libgomp1
COPY --from=build /app /app
",
        good: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -o /app main.cu
FROM nvidia/cuda:12.4.1-base-ubuntu22.04
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1
COPY --from=build /app /app
",
        check: devel::build_tools,
    },
    Rule {
        code: "CD0720",
        name: "unused-cudnn",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -lcublas -o /app main.cu
FROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04
COPY --from=build /app /app
",
        good: "\
FROM nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -lcudnn -o /app main.cu
FROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04
COPY --from=build /app /app
",
        check: flavors::unused_cudnn,
    },
    Rule {
        code: "CD0721",
        name: "unused-stage",
        severity: Severity::Note,
        also: &[],
        is_fixable: false,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -o /app main.cu
FROM nvidia/cuda:12.4.1-base-ubuntu22.04
COPY app /app
",
        good: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS test
COPY main.cu .
RUN nvcc -o /app main.cu
FROM nvidia/cuda:12.4.1-base-ubuntu22.04
COPY app /app
",
        check: copies::unused_stage,
    },
    Rule {
        code: "CD0722",
        name: "unused-math-libraries",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -o /app main.cu
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
COPY --from=build /app /app
",
        good: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -lcufft -o /app main.cu
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
COPY --from=build /app /app
",
        check: flavors::unused_math_libraries,
    },
    Rule {
        code: "CD0723",
        name: "toolkit-copied",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
RUN make -C /src
FROM ubuntu:22.04
COPY --from=build /usr/local/cuda /usr/local/cuda
COPY --from=build /src/app /app
",
        good: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
RUN make -C /src
FROM ubuntu:22.04
COPY --from=build /usr/local/cuda/lib64/libcudart.so.12 /usr/local/cuda/lib64/
COPY --from=build /src/app /app
",
        check: devel::toolkit_copied,
    },
    Rule {
        code: "CD0724",
        name: "packages-of-another-python",
        severity: Severity::Error,
        also: &[],
        is_fixable: false,
        bad: "\
FROM python:3.11-bookworm AS build
RUN pip install --no-cache-dir torch==2.6.0
FROM python:3.12-slim-bookworm
COPY --from=build /usr/local/lib/python3.11/site-packages /usr/local/lib/python3.11/site-packages
",
        good: "\
FROM python:3.12-bookworm AS build
RUN pip install --no-cache-dir torch==2.6.0
FROM python:3.12-slim-bookworm
COPY --from=build /usr/local/lib/python3.12/site-packages /usr/local/lib/python3.12/site-packages
",
        check: copies::packages_of_another_python,
    },
    Rule {
        code: "CD0725",
        name: "compiler-shipped",
        severity: Severity::Note,
        also: &[],
        is_fixable: false,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04
COPY main.cu .
RUN nvcc -O3 -lcublas -o /app main.cu
CMD [\"/app\"]
",
        good: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY main.cu .
RUN nvcc -O3 -lcublas -o /app main.cu
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
COPY --from=build /app /app
CMD [\"/app\"]
",
        check: devel::compiler_shipped,
    },
];
