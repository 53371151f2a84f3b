//! Packages of several libraries, NVIDIA's own packages, and libraries older than the card. The module lists are those of
//! the wheels they are named after.

use cudock_compat::evidence::{ArtifactKind, Code, Role, SubjectKind};
use cudock_compat::{Verdict, judge};
use proptest::prelude::*;

use super::support::*;

const R580: &str = "580.95.05";
const GENERAL: [&str; 7] = ["sm_70", "sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"];

fn package(name: &str) -> Part {
    artifact(name, ArtifactKind::Extension)
}

/// vllm 0.9.2: a core for all cards, quantization kernels for some, and three libraries of attention kernels.
fn vllm() -> Part {
    package("vllm 0.9.2")
        .file("/site/vllm/_C.abi3.so", Role::Framework)
        .module(&GENERAL, &[], 31)
        .module(&["sm_90a"], &[], 17)
        .module(&["sm_80", "sm_87", "sm_90"], &[("compute_90", "8.7")], 16)
        .module(&["sm_100a"], &[], 8)
        .module(&["sm_120a"], &[], 2)
        .module(&["sm_80", "sm_89"], &[], 2)
        .module(&["sm_75", "sm_80", "sm_89"], &[("compute_89", "8.7")], 1)
        .module(&["sm_52"], &[("compute_52", "8.7")], 1)
        .file("/site/vllm/_moe_C.abi3.so", Role::Framework)
        .module(&["sm_80", "sm_87", "sm_90"], &[("compute_90", "8.7")], 11)
        .module(&GENERAL, &[], 3)
        .module(&["sm_52"], &[("compute_52", "8.7")], 2)
        .file("/site/vllm/_flashmla_C.abi3.so", Role::Framework)
        .module(&["sm_90a"], &[], 3)
        .file("/site/vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so", Role::Framework)
        .module(&["sm_80"], &[("compute_80", "8.7")], 60)
        .file("/site/vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so", Role::Framework)
        .module(&["sm_80", "sm_90a"], &[], 172)
        .runtime("12.8")
}

/// sgl-kernel 0.3.9.post2: one library for all cards it supports, one for Hopper and Ampere.
fn sgl_kernel() -> Part {
    package("sgl-kernel 0.3.9.post2")
        .file("/site/sgl_kernel/common_ops.abi3.so", Role::Framework)
        .module(&["sm_80", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_101a", "sm_120a"], &[], 60)
        .file("/site/sgl_kernel/flash_ops.abi3.so", Role::Framework)
        .module(&["sm_80", "sm_86", "sm_90a"], &[], 182)
        .file("/site/lib/mscclpp.so", Role::Framework)
        .module(&["sm_80", "sm_90"], &[("compute_80", "8.8"), ("compute_90", "8.8")], 3)
}

/// paddlepaddle-gpu 2.6.2: helpers reach Hopper, the core does not.
fn paddle() -> Part {
    package("paddlepaddle-gpu 2.6.2")
        .file("/site/paddle/libs/libphi.so", Role::Framework)
        .module(&["sm_61", "sm_70", "sm_75", "sm_80", "sm_86"], &[], 665)
        .file("/site/paddle/libs/libflashattn.so", Role::Framework)
        .module(&["sm_80", "sm_86"], &[], 43)
        .file("/site/paddle/libs/libwarpctc.so", Role::Framework)
        .module(&["sm_35", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"], &[], 2)
}

/// bitsandbytes 0.45.5: the same library for several CUDA versions.
fn bitsandbytes() -> Part {
    let older = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90"];
    package("bitsandbytes 0.45.5")
        .file("/site/bitsandbytes/libbitsandbytes_cuda118.so", Role::Framework)
        .module(&older, &[("compute_90", "7.8")], 3)
        .file("/site/bitsandbytes/libbitsandbytes_cuda121.so", Role::Framework)
        .module(&older, &[("compute_90", "8.1")], 3)
        .file("/site/bitsandbytes/libbitsandbytes_cuda124.so", Role::Framework)
        .module(&older, &[("compute_90", "8.4")], 3)
        .file("/site/bitsandbytes/libbitsandbytes_cuda125.so", Role::Framework)
        .module(&older, &[("compute_90", "8.5")], 3)
        .file("/site/bitsandbytes/libbitsandbytes_cuda128.so", Role::Framework)
        .module(&["sm_70", "sm_75", "sm_80", "sm_90", "sm_100", "sm_120"], &[("compute_120", "8.7")], 3)
}

/// faiss-gpu 1.7.2: kernels of its own with PTX, and cuBLAS of CUDA 10, whose PTX the driver compiles in vain.
fn faiss() -> Part {
    package("faiss-gpu 1.7.2")
        .file("/site/faiss/_swigfaiss.so", Role::Framework)
        .module(&["sm_35", "sm_50", "sm_60", "sm_70", "sm_75"], &[("compute_75", "6.3")], 49)
        .module(&["sm_30", "sm_35", "sm_50", "sm_60", "sm_70", "sm_75"], &[("compute_70", "6.3")], 35)
        .module(&["sm_70"], &[], 44)
}

fn nvidias(name: &str) -> Part {
    let part = artifact(name, ArtifactKind::Library);
    let path = part.0.path.clone();
    part.file(&path, Role::Vendor)
}

// A3: library by library.
case!(
    vllm_runs_on_a_v100_without_flash_attention,
    "R2",
    vllm(),
    gpu("V100", R580),
    works().finding("CD0508").by("R2")
);
case!(vllm_runs_on_a_t4_without_flash_attention, "R2", vllm(), gpu("T4", R580), works().finding("CD0508"));
case!(
    vllm_runs_on_an_a100_with_all_its_libraries,
    "R2",
    vllm(),
    gpu("A100", R580),
    works().no_finding("CD0501")
);
case!(vllm_runs_on_an_h100, "R2", vllm(), gpu("H100", R580), works());
case!(vllm_runs_on_a_b200, "R2", vllm(), gpu("B200", R580), works().finding("CD0508"));
case!(vllm_runs_on_a_5090, "R2", vllm(), gpu("RTX-5090", R580), works().finding("CD0508"));
case!(
    vllm_has_nothing_for_a_p100_but_a_stray_module,
    "R2",
    vllm(),
    gpu("P100", R580),
    fails(209).finding("CD0501")
);
case!(sgl_kernel_runs_on_a_b200, "R2", sgl_kernel(), gpu("B200", R580), works().finding("CD0508"));
case!(sgl_kernel_runs_on_a_5090, "R2", sgl_kernel(), gpu("RTX-5090", R580), works().finding("CD0508"));
case!(sgl_kernel_runs_on_an_h100, "R2", sgl_kernel(), gpu("H100", R580), works().no_finding("CD0508"));
case!(sgl_kernel_has_nothing_for_a_t4, "R2", sgl_kernel(), gpu("T4", R580), fails(209));
case!(
    helpers_do_not_stand_for_a_package_whose_core_has_no_code,
    "R2",
    paddle(),
    gpu("H100", R580),
    fails(209)
);
case!(a_package_runs_where_its_core_does, "R2", paddle(), gpu("T4", R580), works().finding("CD0508"));
case!(of_copies_for_several_cudas_the_best_counts, "R2", bitsandbytes(), gpu("B200", R580), works());
case!(a_copy_that_lacks_the_card_does_no_harm, "R2", bitsandbytes(), gpu("M60", R580), works());
case!(
    a_package_that_is_mostly_compiled_waits_for_it,
    "R2",
    // tensorflow 2.21.0: the generated kernels of its core have no sm_90.
    package("x")
        .file("/site/libtensorflow_cc.so.2", Role::Framework)
        .module(&["sm_60", "sm_70", "sm_80", "sm_89"], &[("compute_90", "8.5")], 1149)
        .module(&["sm_60", "sm_70", "sm_80", "sm_89", "sm_90"], &[("compute_90", "8.3")], 249)
        .file("/site/libtensorflow_framework.so.2", Role::Framework)
        .module(&["sm_60", "sm_70", "sm_80", "sm_89", "sm_90"], &[("compute_90", "8.3")], 81),
    gpu("H100", R580),
    jit()
);
case!(
    a_package_of_one_library_without_code_fails,
    "R2",
    package("x").file("/site/x.so", Role::Framework).module(&["sm_70", "sm_80"], &[], 182),
    gpu("H100", R580),
    fails(209)
);

/// torch 2.9.0 of CUDA 12.8: MAGMA in its linear algebra was built for older cards than its core.
fn torch_2_9(kind: ArtifactKind) -> Part {
    artifact("torch 2.9.0", kind)
        .file("/site/torch/lib/libtorch_cuda.so", Role::Framework)
        .module(&["sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"], &[], 480)
        .file("/site/torch/lib/libtorch_cuda_linalg.so", Role::Framework)
        .module(&["sm_50", "sm_60", "sm_70", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"], &[], 107)
        .needs("libtorch_cuda.so")
}
case!(
    the_libraries_of_a_framework_belong_together,
    "R2",
    torch_2_9(ArtifactKind::Framework),
    gpu("P100", R580),
    fails(209)
);
case!(
    a_library_that_links_one_without_code_does_not_save_the_package,
    "R2",
    torch_2_9(ArtifactKind::Extension),
    gpu("P100", R580),
    fails(209)
);
case!(
    a_framework_runs_where_most_of_it_does,
    "R2",
    torch_2_9(ArtifactKind::Framework),
    gpu("T4", R580),
    works()
);

// A4: NVIDIA's packages by themselves, and code made at run time.
case!(
    nccl_by_itself_works_where_it_has_code,
    "A4",
    nvidias("libnccl.so.2").module(
        &["sm_50", "sm_60", "sm_70", "sm_80", "sm_90"],
        &[("compute_90", "8.1")],
        363
    ),
    gpu("H100", R580),
    works()
);
case!(
    nccl_by_itself_is_compiled_for_a_newer_card,
    "A4",
    nvidias("libnccl.so.2").module(
        &["sm_50", "sm_60", "sm_70", "sm_80", "sm_90"],
        &[("compute_90", "8.1")],
        363
    ),
    gpu("B200", R580),
    jit()
);
case!(
    a_library_of_cuda_13_by_itself_fails_on_a_v100,
    "A4",
    nvidias("libcublas.so.13").module(&["sm_75", "sm_80", "sm_90", "sm_100"], &[], 40),
    gpu("V100", R580),
    fails(209).finding("CD0506")
);
case!(
    one_module_of_many_is_enough_for_a_library_that_chooses_by_the_card,
    "A4",
    nvidias("libcudnn_ops.so.9").module(&["sm_80"], &[], 300).module(&["sm_75"], &[], 2),
    gpu("T4", R580),
    works()
);
case!(
    a_program_that_only_loads_nvidias_libraries_still_works,
    "A4",
    app().file("/opt/lib/libcublas.so.12", Role::Vendor).module(&["sm_80"], &[], 40),
    gpu("A100", R580),
    works()
);
case!(
    a_package_that_compiles_when_it_runs_is_unknown_and_never_cpu,
    "A4",
    package("numba-cuda 0.30.4").code(Code::AtRunTime("driver.py loads the NVIDIA driver".to_owned())),
    gpu("H100", R580),
    unknown().finding("CD0510")
);

// A16: math libraries older than the card.
case!(faiss_with_cublas_10_runs_on_a_t4, "R3", faiss().embeds(&["cuBLAS"]), gpu("T4", R580), works());
case!(
    faiss_with_cublas_10_fails_on_an_a100,
    "R3",
    faiss().embeds(&["cuBLAS"]),
    gpu("A100", R580),
    fails_by("CUBLAS_STATUS_EXECUTION_FAILED").prints("cublas failed (13)").finding("CD0509").by("R3")
);
case!(
    faiss_with_cublas_10_fails_on_an_h100,
    "R3",
    faiss().embeds(&["cuBLAS"]),
    gpu("H100", R580),
    fails_by("CUBLAS_STATUS_EXECUTION_FAILED")
);
case!(
    the_same_kernels_without_cublas_are_compiled,
    "R3",
    faiss(),
    gpu("A100", R580),
    jit().no_finding("CD0509")
);
case!(
    an_embedded_cublas_of_cuda_11_is_unknown_on_a_b200,
    "R3",
    package("x")
        .file("/site/x.so", Role::Framework)
        .module(&["sm_80"], &[("compute_80", "7.4")], 50)
        .embeds(&["cuBLAS"]),
    gpu("B200", R580),
    unknown().finding("CD0509")
);
case!(
    an_embedded_cublas_that_knows_the_card_is_compiled_as_usual,
    "R3",
    package("x")
        .file("/site/x.so", Role::Framework)
        .module(&["sm_80"], &[("compute_80", "8.7")], 50)
        .embeds(&["cuBLAS"]),
    gpu("B200", R580),
    jit().no_finding("CD0509")
);
case!(
    an_embedded_cublas_does_not_matter_where_machine_code_runs,
    "R3",
    package("x")
        .file("/site/x.so", Role::Framework)
        .module(&["sm_80"], &[("compute_80", "7.0")], 50)
        .embeds(&["cuBLAS"]),
    gpu("L4", R580),
    works().no_finding("CD0509")
);
case!(
    a_separate_cublas_that_is_older_than_the_card_is_a_warning,
    "R3",
    sass(&["sm_100"]).file("/opt/lib/libcublas.so.11", Role::Vendor).module(
        &["sm_80"],
        &[("compute_80", "7.4")],
        50
    ),
    gpu("B200", R580),
    works().finding("CD0509")
);

/// Every target that a message lists after "no code for capability".
fn listed_after_no_code(reason: &str) -> Vec<String> {
    let Some((_, list)) = reason.split_once("no code for capability") else { return Vec::new() };
    let targets = list.split([' ', ';', ',']).filter(|word| word.starts_with("sm_"));
    targets.map(str::to_owned).collect()
}

proptest! {
    /// "no code for capability 7.5; it has … sm_75" must not be reported.
    #[test]
    fn a_message_never_lists_code_for_the_card_among_what_has_none(
        libraries in prop::collection::vec(
            prop::collection::vec((prop::sample::subsequence(GENERAL.to_vec(), 1..5), 1_u64..200), 1..4),
            1..4,
        ),
        card in prop::sample::select(vec!["P100", "V100", "T4", "A100", "L4", "H100", "B200", "RTX-5090"]),
    ) {
        let mut part = package("package");
        for (index, modules) in libraries.iter().enumerate() {
            part = part.file(&format!("/site/lib{index}.so"), Role::Framework);
            for (targets, count) in modules {
                part = part.module(targets, &[], *count);
            }
        }
        let mut given = Given::from(part);
        given.0.kind = SubjectKind::Wheel;
        let target = gpu(card, R580);
        let judgement = judge(&given.0, &target, facts());
        let capability = target.capability.unwrap();
        let texts = judgement.findings.iter().map(|finding| finding.message.clone());
        let optional = judgement.findings.iter().filter(|finding| finding.code == "CD0508");
        let seen = optional.flat_map(|finding| &finding.evidence);
        let seen = seen.map(|seen| format!("no code for capability: {}", seen.detail));
        for text in texts.chain([judgement.reason.clone()]).chain(seen) {
            for code in listed_after_no_code(&text) {
                let code: cudock_facts::version::SmArch = code.parse().unwrap();
                prop_assert!(!code.runs_on(capability), "{text}");
            }
        }
        prop_assert!(judgement.verdict != Verdict::Cpu);
    }
}
