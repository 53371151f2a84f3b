//! Packages are found under every name people write.

use cudock_facts::Facts;
use cudock_facts::lookup::PackageUse;
use cudock_facts::tables::GpuUse;

#[test]
fn a_package_is_found_by_its_name_its_variant_and_its_name_in_conda() {
    let facts = Facts::embedded();
    let packages = facts.packages();
    let cases = [
        ("cupy-cuda12x", GpuUse::Compiler, Some(12)),
        ("cupy", GpuUse::Compiler, None),
        ("faiss-gpu-cu12", GpuUse::Code, Some(12)),
        ("nvidia-dali-cuda120", GpuUse::Code, Some(12)),
        ("mxnet-cu112", GpuUse::Code, Some(11)),
        ("libcudf-cu12", GpuUse::Code, Some(12)),
        ("tensorrt-cu13-libs", GpuUse::Code, Some(13)),
        ("nvidia-cusparselt-cu12", GpuUse::Library, Some(12)),
        ("nvidia-cublas", GpuUse::Library, None),
        ("pytorch-gpu", GpuUse::Framework, None),
        ("py-xgboost", GpuUse::Code, None),
        ("pynvml", GpuUse::Driver, None),
        ("torchvision", GpuUse::Wraps, None),
        ("lightgbm", GpuUse::OtherApi, None),
    ];
    for (name, uses, major) in cases {
        let PackageUse::Gpu(row, cuda) = packages.find(name) else { panic!("{name} is not found") };
        assert_eq!((row.uses, cuda.map(|cuda| cuda.major)), (uses, major), "{name}");
    }
    // Without a CUDA suffix these are CPU builds.
    for name in ["mxnet", "dgl", "numpy", "flask", "openssl", "paddlepaddle"] {
        assert_eq!(packages.find(name), PackageUse::NoGpu, "{name}");
    }
    for name in ["no-such-package", "no-such-package-cu12", "numpy-cu12x"] {
        assert_eq!(packages.find(name), PackageUse::Unknown, "{name}");
    }
}

#[test]
fn the_table_covers_what_people_install() {
    let packages = Facts::embedded();
    let packages = packages.packages();
    let gpu: usize = packages.gpu.iter().map(|row| 1 + row.also.len()).sum();
    let none: usize = packages.no_gpu.iter().map(|group| group.names.len()).sum();
    assert!(gpu >= 80 && none >= 150, "{gpu} and {none}");
}

#[test]
fn the_pins_of_a_release_are_those_of_its_metadata() {
    let facts = Facts::embedded();
    let needs = |package: &str, version: &str| {
        let version = version.parse().unwrap();
        let mut pins = facts.packages().pins_of(package, &version);
        pins.find(|(name, _)| *name == "torch").map(|(_, needs)| needs.to_string())
    };
    assert_eq!(needs("torchvision", "0.16.0+cu121").as_deref(), Some("2.1.0"));
    assert_eq!(needs("torchaudio", "2.5.1").as_deref(), Some("2.5.1"));
    assert_eq!(needs("vllm", "0.9.2").as_deref(), Some("2.7.0"));
    assert_eq!(needs("xformers", "0.0.28.post3").as_deref(), Some("2.5.1"));
    assert_eq!(needs("torchvision", "0.29.2"), None);
}
