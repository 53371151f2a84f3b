//! Derives rows for boards of which only the chip is known.

use std::collections::HashMap;

use crate::tables::{Chip, ForwardCompatClass, Gpu, GpuClass, Gpus, KernelModule, OfChips, Vendor};
use crate::version::Capability;

/// Derives rows from the chip table: a row per product name, one per chip for boards without a name, and the other names
/// of boards that have a row.
pub(super) fn derive(gpus: &Gpus) -> OfChips {
    let mut owners: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, gpu) in gpus.gpu.iter().enumerate() {
        for id in &gpu.pci_ids {
            owners.entry(id).or_default().push(number);
        }
    }
    let mut derived = OfChips::default();
    let mut numbers: HashMap<(String, Capability), usize> = HashMap::new();
    for chip in &gpus.chip {
        numbers.insert((chip.id.clone(), chip.capability), derived.rows.len());
        derived.rows.push(row(chip, ""));
        for (id, names) in chip.devices() {
            match owners.get(id).map(Vec::as_slice) {
                Some([owner]) => {
                    derived.aliases.extend(names.into_iter().map(|name| (name.to_owned(), *owner)));
                    continue;
                }
                // Boards that share an id already have rows with their names.
                Some(_) => continue,
                None => {}
            }
            let names = if names.is_empty() { vec![""] } else { names };
            for name in names {
                let key = if name.is_empty() { chip.id.clone() } else { name.to_owned() };
                let number = *numbers.entry((key, chip.capability)).or_insert_with(|| {
                    let mut gpu = row(chip, name);
                    // Chips of two generations were sold under one name.
                    if derived.rows.iter().any(|other| other.id == gpu.id) {
                        gpu.id = format!("{}-{}", gpu.id, chip.id);
                    }
                    derived.rows.push(gpu);
                    derived.rows.len() - 1
                });
                if let Some(gpu) = derived.rows.get_mut(number) {
                    gpu.pci_ids.push(id.to_owned());
                }
            }
        }
    }
    derived
}

fn row(chip: &Chip, name: &str) -> Gpu {
    let class = class(name);
    Gpu {
        id: if name.is_empty() { chip.id.clone() } else { id(name) },
        names: if name.is_empty() { Vec::new() } else { vec![name.to_owned()] },
        vendor: Vendor::Nvidia,
        capability: Some(chip.capability),
        architecture: Some(chip.architecture.clone()),
        class,
        memory_gb: memory(name),
        fp16_tflops: None,
        memory_gb_per_s: None,
        mig_instances: None,
        forward_compat: match class {
            GpuClass::Datacenter | GpuClass::Jetson => ForwardCompatClass::Yes,
            GpuClass::Workstation => ForwardCompatClass::BrandDependent,
            GpuClass::Consumer => ForwardCompatClass::No,
        },
        kernel_module: match (class, chip.capability) {
            (GpuClass::Jetson, _) => None,
            (_, capability) if capability < Capability::new(7, 5) => Some(KernelModule::ProprietaryOnly),
            (_, capability) if capability >= Capability::new(10, 0) => Some(KernelModule::OpenOnly),
            _ => Some(KernelModule::Either),
        },
        pci_ids: Vec::new(),
        note: Some(format!("Chip {}. Data derived from the chip and the product name only.", chip.id)),
        source: chip.source.clone(),
    }
}

/// GTX-1660-Ti of `GeForce GTX 1660 Ti`.
fn id(name: &str) -> String {
    let parts =
        name.split([' ', '-']).filter(|part| !matches!(*part, "" | "GeForce" | "Tesla" | "Generation"));
    parts.collect::<Vec<_>>().join("-")
}

/// The class of a board, by its product line.
fn class(name: &str) -> GpuClass {
    let starts = |lines: &[&str]| lines.iter().any(|line| name.starts_with(line));
    // T400 to T2000 are workstation boards; T4, T10 and T40 are for servers.
    let small_workstation = || {
        let digits = name.strip_prefix('T').map(|rest| rest.bytes().take_while(u8::is_ascii_digit).count());
        digits.is_some_and(|digits| digits >= 3)
    };
    if starts(&["GeForce", "TITAN", "RTX TITAN", "CMP"]) {
        GpuClass::Consumer
    } else if starts(&["Quadro", "NVS", "RTX"]) || small_workstation() {
        GpuClass::Workstation
    } else if starts(&["Jetson"]) {
        GpuClass::Jetson
    } else {
        GpuClass::Datacenter
    }
}

/// The memory in a name: 16 of `T10 16GB`.
fn memory(name: &str) -> Vec<u32> {
    name.split([' ', '-']).filter_map(|word| word.strip_suffix("GB")?.parse().ok()).collect()
}
