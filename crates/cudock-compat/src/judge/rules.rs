//! The rules by their names: `check --explain` prints those that were applied.

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckRule {
    /// S1
    pub id: &'static str,
    /// What it says.
    pub text: &'static str,
}

macro_rules! rules {
    ($($id:literal: $text:literal,)+) => {
        /// All rules.
        pub const RULES: &[CheckRule] = &[$(CheckRule { id: $id, text: $text }),+];
    };
}

rules! {
    "B1": "A base image, a package version or a compiler target that does not exist ends the build: there is nothing to start.",
    "Q1": "An image or program runs on processors of its own architecture only; otherwise the kernel says `exec format error`.",
    "Q2": "A driver branch drives the generations between the oldest it kept and the newest it knew; a card outside is not seen (error 100).",
    "V1": "NVIDIA_VISIBLE_DEVICES decides whether the runtime injects anything: void, empty or unset nothing, none the driver without a card.",
    "V2": "NVIDIA_DRIVER_CAPABILITIES must contain compute for libcuda to be injected; CDI ignores it.",
    "V4": "CUDA_VISIBLE_DEVICES hides what it does not list; an entry that is not there hides itself and all after it.",
    "V6": "libcuda belongs to the host: a copy in the image that comes first is used instead, and must fit the kernel's driver.",
    "G1": "NVIDIA_REQUIRE_* is evaluated where NVIDIA's hook starts the container: alternatives by spaces, conditions by commas.",
    "G2": "CDI does not evaluate NVIDIA_REQUIRE_*.",
    "C1": "cuda-compat runs on an older kernel driver if the pair is supported (else 803) and the card is of a class it supports (else 804).",
    "C3": "cuda-compat must be newer than the host's driver; an older copy that comes first fails with 803.",
    "C4": "NVIDIA's toolkit puts the image's cuda-compat first if its note lists the host's branch, or without a note if its driver is newer.",
    "D1": "A driver runs every application of an older CUDA, also of an older major.",
    "D2": "A CUDA runtime from 11 on works on any driver at or above the floor of its major; below it, error 35.",
    "D3": "On a driver older than the toolkit but above the floor, machine code runs, PTX and newer calls do not.",
    "D6": "Without libcuda the runtime answers error 35, as with a driver that is too old, and driver version 0.",
    "L1": "The loader searches RPATH, LD_LIBRARY_PATH, RUNPATH, its cache and its own directories, in that order; what it does not find ends the program.",
    "L2": "A framework that loads CUDA when it is used goes on with the CPU where a library is missing.",
    "L3": "A symbol version the C library does not have ends the program at its start.",
    "S1": "Machine code runs on cards of its major with its minor or a higher one.",
    "S2": "Integrated cards run only code of their own number; from CUDA 13.2 on, 7.2 and 8.7 run the code of their major too.",
    "S3": "10.1 and 11.0 are the same card under two numbers.",
    "A1": "Code for an `a` target runs on that capability alone.",
    "A3": "A library may hold modules for special cards beside its general ones: the general ones decide.",
    "F1": "PTX for an `f` target compiles for the cards of its family, from its own minor on.",
    "P1": "Plain PTX compiles for every card at or above its capability.",
    "P2": "The driver must understand the PTX's language, which the toolkit sets; otherwise error 222.",
    "P4": "PTX needs the driver's compiler library (error 221) and compiling must not be switched off (error 223).",
    "P5": "PTX never helps an older card.",
    "R1": "A module without machine code or PTX for the card fails at its first launch: error 209, or 500 where the device side was linked.",
    "R2": "A package is judged library by library: one without code for the card is optional if others cover it.",
    "R3": "cuBLAS and cuDNN support the cards of their own toolkit: PTX does not carry an older one to a newer card.",
    "M1": "NVSwitch machines need a running fabric manager (802); MIG needs an instance (100); compute mode may keep programs out (46).",
    "N1": "CUDA runs on NVIDIA's cards only.",
}
