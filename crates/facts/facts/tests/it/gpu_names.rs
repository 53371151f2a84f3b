//! Names of GPUs as nvidia-smi, pci.ids and people write them.

use cudock_facts::Facts;
use cudock_facts::lookup::NameMatch;
use cudock_facts::tables::Gpu;

fn capability(rows: &[&Gpu]) -> Vec<String> {
    let mut found: Vec<String> =
        rows.iter().filter_map(|row| row.capability).map(|found| found.to_string()).collect();
    found.sort();
    found.dedup();
    found
}

/// Capabilities as NVIDIA's list of CUDA GPUs has them.
#[test]
fn what_nvidia_smi_prints_has_its_capability() {
    let facts = Facts::embedded();
    for (name, expected) in [
        ("Tesla P100-PCIE-16GB", "6.0"),
        ("Tesla P100-SXM2-16GB", "6.0"),
        ("Tesla V100-SXM2...", "7.0"),
        ("Tesla V100-SXM2-32GB-LS", "7.0"),
        ("Tesla V100S-PCIE-32GB", "7.0"),
        ("Tesla K80", "3.7"),
        ("Tesla M40 24GB", "5.2"),
        ("Tesla T10", "7.5"),
        ("Tesla T4", "7.5"),
        ("NVIDIA A10-24Q", "8.6"),
        ("NVIDIA A10-4Q", "8.6"),
        ("GRID A100-1-5C", "8.0"),
        ("GRID A100D-80C", "8.0"),
        ("GRID V100D-8Q", "7.0"),
        ("GRID T4-16Q", "7.5"),
        ("GRID P40-24Q", "6.1"),
        ("NVIDIA L40S-48Q", "8.9"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0"),
        ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", "9.0"),
        ("NVIDIA A100-SXM...", "8.0"),
        ("NVIDIA A100 80GB PCIe", "8.0"),
        ("NVIDIA A800-SXM4-80GB", "8.0"),
        ("NVIDIA H800", "9.0"),
        ("NVIDIA H20", "9.0"),
        ("NVIDIA L20", "8.9"),
        ("NVIDIA L2", "8.9"),
        ("NVIDIA A10G", "8.6"),
        ("NVIDIA RTX A4000", "8.6"),
        ("NVIDIA RTX A5000", "8.6"),
        ("RTX A4500", "8.6"),
        ("NVIDIA RTX 4000 Ada Generation", "8.9"),
        ("NVIDIA RTX 5000 Ada Generation", "8.9"),
        ("NVIDIA RTX 4000 SFF Ada Generation", "8.9"),
        ("NVIDIA RTX 2000 Ada Generation Laptop GPU", "8.9"),
        ("NVIDIA RTX PRO 4000 Blackwell", "12.0"),
        ("Quadro RTX 4000", "7.5"),
        ("Quadro RTX 5000", "7.5"),
        ("Quadro P4000", "6.1"),
        ("Quadro GV100", "7.0"),
        ("Quadro M6000", "5.2"),
        ("NVIDIA T1000 8GB", "7.5"),
        ("NVIDIA TITAN RTX", "7.5"),
        ("NVIDIA TITAN V", "7.0"),
        ("NVIDIA TITAN Xp", "6.1"),
        ("NVIDIA TITAN X (Pascal)", "6.1"),
        ("NVIDIA GeForce GTX TITAN X", "5.2"),
        ("GeForce GTX TITAN Black", "3.5"),
        ("NVIDIA GeForce GTX 1660 Ti", "7.5"),
        ("NVIDIA GeForce GTX 1660 SUPER", "7.5"),
        ("NVIDIA GeForce GTX 1650", "7.5"),
        ("GeForce GTX 1060 6GB", "6.1"),
        ("GeForce GTX 1050 Ti", "6.1"),
        ("GeForce GTX 980 Ti", "5.2"),
        ("GeForce GTX 950", "5.2"),
        ("GeForce GTX 680", "3.0"),
        ("NVIDIA GeForce RTX 3050", "8.6"),
        ("NVIDIA GeForce RTX 3070 Laptop GPU", "8.6"),
        ("NVIDIA GeForce RTX 3080 Ti Laptop GPU", "8.6"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "8.9"),
        ("NVIDIA GeForce RTX 5090 Laptop GPU", "12.0"),
        ("GeForce RTX 2080 with Max-Q Design", "7.5"),
        ("NVIDIA GeForce GTX 1650 with Max-Q Design", "7.5"),
        ("NVIDIA GeForce MX450", "7.5"),
        ("NVIDIA B200", "10.0"),
        ("NVIDIA GB10", "12.1"),
        ("Jetson AGX Xavier", "7.2"),
        ("Xavier NX", "7.2"),
        ("NVIDIA Thor", "11.0"),
        ("Jetson AGX Thor", "11.0"),
        ("Jetson Nano", "5.3"),
        ("A4000", "8.6"),
        ("P4000", "6.1"),
        ("V100-32GB", "7.0"),
        ("rtx4090", "8.9"),
        ("gtx1660ti", "7.5"),
        ("GK210", "3.7"),
        ("TU117", "7.5"),
    ] {
        let found = facts.gpus().find(name);
        assert_eq!(
            capability(&found.clone().rows()),
            [expected],
            "{name}: {:?}",
            found.rows().iter().map(|row| &row.id).collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_name_that_gpus_of_two_capabilities_share_asks() {
    let facts = Facts::embedded();
    for name in [
        "RTX 4000",
        "RTX 5000",
        "TITAN X",
        "GeForce GT 730",
        "GeForce GTX 860M",
        "GeForce GTX 750 Ti",
        "GeForce GT 1030",
    ] {
        let found = facts.gpus().find(name);
        assert!(matches!(found, NameMatch::Several(_)), "{name}: {found:?}");
        assert!(capability(&found.rows()).len() > 1, "{name}");
    }
}

#[test]
fn a_name_that_is_too_short_or_unknown_is_refused() {
    let facts = Facts::embedded();
    for name in [
        "GeForce",
        "NVIDIA",
        "RTX",
        "GTX",
        "16GB",
        "PCIe",
        "NVIDIA GeForce ...",
        "",
        "...",
        "RX 7900 XTX",
        "GeForce FX 5200",
        "A1",
        "RTX 9999",
    ] {
        assert!(facts.gpus().find(name).rows().is_empty(), "{name}: {:?}", facts.gpus().find(name));
    }
    assert!(
        matches!(facts.gpus().find("RTX A4001"), NameMatch::NotFound(near) if near.contains(&"RTX-A4000"))
    );
}

/// Every product of pci.ids, however it is written, is the right card, a choice that has it, or refused.
#[test]
fn no_product_name_of_pci_ids_gives_a_wrong_card() {
    let facts = Facts::embedded();
    let gpus = facts.gpus();
    let (mut names, mut refused) = (0, 0);
    let mut seen = std::collections::BTreeSet::new();
    for chip in &gpus.chip {
        for (id, products) in chip.devices() {
            let number = u16::from_str_radix(id, 16).unwrap();
            let expected = chip.capability.to_string();
            assert_eq!(capability(&gpus.by_pci_id(number)), [expected.as_str()], "{id}");
            for product in products {
                // Look-ups are slow without optimization; a name once per capability is enough.
                if !seen.insert((product, chip.capability)) {
                    continue;
                }
                for written in [
                    format!("NVIDIA {product}"),
                    product.to_lowercase().replace(' ', "-").replace("mobile", "Laptop GPU"),
                    product.replace(' ', ""),
                ] {
                    names += 1;
                    let found = gpus.find(&written);
                    if let NameMatch::NotFound(near) = &found {
                        let glued = !written.contains(' ');
                        assert!(glued || !near.is_empty(), "{written} is refused without a suggestion");
                        refused += 1;
                    }
                    let found = capability(&found.rows());
                    assert!(
                        found.is_empty() || found.contains(&expected),
                        "{written} is {expected}, found {found:?}"
                    );
                    if let Some(row) = gpus.by_product_name(&written) {
                        assert_eq!(
                            row.capability.unwrap().to_string(),
                            expected,
                            "{written} by product name"
                        );
                    }
                }
            }
        }
    }
    assert!(names > 1500, "{names}");
    assert!(refused * 10 < names, "{refused} of {names} are refused");
}

#[test]
fn a_row_made_from_its_chip_has_class_module_and_memory() {
    use cudock_facts::tables::{ForwardCompatClass, GpuClass, KernelModule};
    let facts = Facts::embedded();
    let gpu = |name: &str| facts.gpus().find(name).one().unwrap_or_else(|| panic!("{name}"));
    assert_eq!(gpu("RTX A4000").class, GpuClass::Workstation);
    assert_eq!(gpu("GTX 1660 Ti").forward_compat, ForwardCompatClass::No);
    assert_eq!(gpu("Tesla M10").kernel_module, Some(KernelModule::ProprietaryOnly));
    assert_eq!(gpu("RTX PRO 4000 Blackwell").kernel_module, Some(KernelModule::OpenOnly));
    assert_eq!(
        (gpu("T1000 8GB").class, gpu("T1000 8GB").memory_gb.as_slice()),
        (GpuClass::Workstation, &[8][..])
    );
    assert_eq!(gpu("A10G").class, GpuClass::Datacenter);
}
