//! The rules by their names: `check --explain` prints those that were applied.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckRule {
    /// S1
    pub id: &'static str,
    pub text: &'static str,
}

macro_rules! rules {
    ($($id:literal: $text:literal,)+) => {
        /// All rules.
        pub const RULES: &[CheckRule] = &[$(CheckRule { id: $id, text: $text }),+];
    };
}

rules! {
    "B1": "A base image, a package version or a compiler target that does not exist fails the build.",
    "Q1": "An image or program runs only on CPUs of its own architecture; otherwise the kernel reports `exec format error`.",
    "Q2": "A driver branch supports a range of GPU generations; other GPUs are not visible (error 100).",
    "V1": "NVIDIA_VISIBLE_DEVICES selects what the runtime injects: nothing if void, empty or unset; only the driver if none.",
    "V2": "NVIDIA_DRIVER_CAPABILITIES must contain compute for libcuda to be injected; CDI ignores it.",
    "V4": "CUDA_VISIBLE_DEVICES hides GPUs that it does not list; an invalid entry hides itself and all later ones.",
    "V6": "libcuda comes from the host; a copy in the image that is found first is used instead, and must match the kernel driver.",
    "G1": "NVIDIA's hook evaluates NVIDIA_REQUIRE_*: spaces separate alternatives, commas separate conditions.",
    "G2": "CDI does not evaluate NVIDIA_REQUIRE_*.",
    "C1": "cuda-compat runs on an older kernel driver if the pair is supported (otherwise 803) and it supports the class of the GPU (otherwise 804).",
    "C3": "cuda-compat must be newer than the host driver; an older copy that is found first fails with 803.",
    "C4": "NVIDIA's toolkit puts the image's cuda-compat first if its note lists the host's branch, or without a note if its driver is newer.",
    "D1": "A driver runs every application built for an older CUDA version, including older major versions.",
    "D2": "A CUDA runtime from 11 on works on any driver at or above the minimum for its major version; below it, error 35.",
    "D3": "On a driver older than the toolkit but above the minimum, machine code runs; PTX and newer API calls do not.",
    "D6": "Without libcuda the runtime returns error 35, as with a driver that is too old, and driver version 0.",
    "L1": "The loader searches RPATH, LD_LIBRARY_PATH, RUNPATH, its cache and its default directories, in that order; a missing library stops the program.",
    "L2": "A framework that loads CUDA on demand falls back to the CPU if a library is missing.",
    "L3": "A symbol version that the C library does not have stops the program at startup.",
    "S1": "Machine code runs on GPUs with the same major version and the same or a higher minor version.",
    "S2": "Integrated GPUs run only code for their exact capability; from CUDA 13.2 on, 7.2 and 8.7 also run code for their major version.",
    "S3": "10.1 and 11.0 are the same GPU under two numbers.",
    "A1": "Code for an `a` target runs on that capability only.",
    "A3": "A library may have modules for specific GPUs in addition to general ones; the general ones decide.",
    "F1": "PTX for an `f` target compiles for GPUs of its family, from its own minor version on.",
    "P1": "Plain PTX compiles for every GPU at or above its capability.",
    "P2": "The driver must support the PTX version, which the toolkit determines; otherwise error 222.",
    "P4": "PTX needs the driver's compiler library (error 221) and JIT compilation must not be disabled (error 223).",
    "P5": "PTX never runs on an older GPU.",
    "R1": "A module without machine code or PTX for the GPU fails at its first launch: error 209, or 500 if device code was linked.",
    "R2": "A package is judged library by library: one without code for the GPU is optional if others cover it.",
    "R3": "cuBLAS and cuDNN support only the GPUs of their own toolkit; PTX does not extend an older one to a newer GPU.",
    "M1": "NVSwitch machines need a running fabric manager (802); MIG needs an instance (100); compute mode may deny access (46).",
    "N1": "CUDA runs on NVIDIA GPUs only.",
}
