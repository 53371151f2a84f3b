//! Reads files written by nvcc, files built by hand, and corrupt files.

use cudock_fatbin::{
    Binary, CodeTarget, Codec, Coverage, Cubin, EntryKind, FileKind, ModuleTargets, ReadError, read,
};
use proptest::prelude::*;

use crate::build::{container, cubin_entry, elf_library, entry, group};

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn targets(binary: &Binary) -> Vec<String> {
    binary.lines().iter().map(|line| format!("{} x{}", line.target, line.count)).collect()
}

#[test]
fn all_formats_of_nvcc_are_read() {
    let four = ["sm_75 x1", "sm_90 x1", "sm_100 x1", "compute_90 x1"];
    for (name, kind, expected) in [
        ("default.fatbin", FileKind::Fatbin, &four[..]),
        ("compress-none.fatbin", FileKind::Fatbin, &four),
        ("compress-speed.fatbin", FileKind::Fatbin, &four),
        ("compress-balance.fatbin", FileKind::Fatbin, &four),
        ("compress-size.fatbin", FileKind::Fatbin, &four),
        (
            "concat.fatbin",
            FileKind::Fatbin,
            &["sm_75 x1", "sm_90 x1", "sm_100 x1", "sm_120 x1", "compute_120 x1"],
        ),
        (
            "variants.fatbin",
            FileKind::Fatbin,
            &["sm_90a x1", "sm_100f x1", "sm_100a x1", "sm_103f x1", "sm_120a x1", "compute_90a x1"],
        ),
        ("debug.fatbin", FileKind::Fatbin, &["sm_90 x1"]),
        ("lto.fatbin", FileKind::Fatbin, &["sm_90 x1", "lto_90 x1"]),
        ("ptx-options.fatbin", FileKind::Fatbin, &["compute_80 x1"]),
        ("sm_90a.cubin", FileKind::Cubin, &["sm_90a x1"]),
        ("object.o", FileKind::Elf, &["sm_75 x1", "sm_90 x1"]),
        ("relocatable.o", FileKind::Elf, &["sm_75 x1", "sm_90 x1"]),
        ("archive.a", FileKind::Archive, &["sm_75 x1", "sm_90 x1"]),
        ("library.so", FileKind::Elf, &["sm_75 x1", "sm_90 x1"]),
        // The input of the device linker is also present, but does not count.
        ("device-linked.so", FileKind::Elf, &["sm_75 x1", "sm_90 x1"]),
    ] {
        let binary = read(&fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(binary.kind, kind, "{name}");
        assert_eq!(targets(&binary), expected, "{name}");
        assert!(binary.damage.is_empty(), "{name}: {:?}", binary.damage);
        assert!(binary.unknown().is_empty(), "{name}: {:?}", binary.unknown());
    }
}

#[test]
fn every_payload_decompresses_and_matches_its_header() {
    let mut codecs = Vec::new();
    for name in [
        "compress-none",
        "compress-speed",
        "compress-balance",
        "compress-size",
        "concat",
        "variants",
        "debug",
    ] {
        let bytes = fixture(&format!("{name}.fatbin"));
        for entry in read(&bytes).unwrap().modules.iter().flat_map(|module| &module.entries) {
            codecs.push(entry.codec);
            let payload = entry.payload(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            match entry.target {
                Some(CodeTarget::Sass(arch)) => {
                    let cubin = Cubin::parse(&payload).unwrap();
                    assert_eq!(cubin.arch.capability(), arch.capability(), "{name}");
                }
                Some(CodeTarget::Ptx(arch)) => {
                    let target = arch.to_string().replace("compute_", ".target sm_");
                    assert!(String::from_utf8_lossy(&payload).contains(&target), "{name}");
                }
                Some(other) => panic!("{name}: {other}"),
                None => assert_eq!(entry.kind, EntryKind::Group, "{name}"),
            }
            for member in &entry.members {
                let start = usize::try_from(member.start).unwrap();
                let cubin =
                    Cubin::parse(&payload[start..start + usize::try_from(member.bytes).unwrap()]).unwrap();
                assert_eq!(CodeTarget::Sass(cubin.arch), member.target);
                assert_eq!(cubin.kernels.len(), 2);
            }
        }
    }
    for codec in [Codec::Raw, Codec::Lz4, Codec::Zstd] {
        assert!(codecs.contains(&codec), "no fixture is {codec:?}");
    }
}

#[test]
fn kernel_resources_match_cuobjdump() {
    let text = String::from_utf8(fixture("sm_90a.resources.txt")).unwrap();
    let cubin = Cubin::parse(&fixture("sm_90a.cubin")).unwrap();
    for kernel in &cubin.kernels {
        let line =
            text.split("Function ").find(|part| part.starts_with(&format!("{}:", kernel.name))).unwrap();
        let number = |name: &str| -> u64 {
            let rest = &line[line.find(name).unwrap() + name.len()..];
            rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().unwrap()
        };
        let ours = (u64::from(kernel.registers), kernel.shared, kernel.constant);
        assert_eq!(ours, (number("REG:"), number("SHARED:"), number("CONSTANT[0]:")), "{}", kernel.name);
    }
    assert_eq!(cubin.kernels.len(), 2);
}

#[test]
fn a_module_of_only_the_device_linker_has_no_kernels() {
    let bytes = fixture("library.so");
    assert_eq!(read(&bytes).unwrap().modules[0].has_kernels(&bytes), Some(true));
}

#[test]
fn linkage_matches_the_loader() {
    let linkage = read(&fixture("library.so")).unwrap().linkage;
    assert_eq!(linkage.soname.as_deref(), Some("library.so.1"));
    assert!(linkage.needed.contains(&"libc.so.6".to_owned()), "{linkage:?}");
    assert_eq!(linkage.glibc().as_deref(), Some("2.2.5"));
}

#[test]
fn code_in_other_sections_is_found() {
    let code = container(&[cubin_entry(90, 0), cubin_entry(75, 0)]);
    let data = [vec![7; 24], code, vec![9; 8]].concat();
    let binary = read(&elf_library(&[(".lrodata", &data)])).unwrap();
    assert_eq!(targets(&binary), ["sm_75 x1", "sm_90 x1"]);
    assert_eq!(binary.modules[0].section, ".lrodata");
}

#[test]
fn containers_in_an_unaligned_section_are_found() {
    let two = [container(&[cubin_entry(75, 0)]), container(&[cubin_entry(90, 0)])].concat();
    let mut bytes = elf_library(&[(".ldata", &[vec![0; 8], two].concat())]);
    // The section starts four bytes later: its containers are aligned in memory, but not in the section.
    let at = usize::try_from(u64::from_le_bytes(bytes[40..48].try_into().unwrap())).unwrap() + 64;
    for field in [16, 24] {
        let value = u64::from_le_bytes(bytes[at + field..at + field + 8].try_into().unwrap()) + 4;
        bytes[at + field..at + field + 8].copy_from_slice(&value.to_le_bytes());
    }
    assert_eq!(targets(&read(&bytes).unwrap()), ["sm_75 x1", "sm_90 x1"]);
}

/// TensorFlow's generated kernels: the header says 90, the text `sm_90a`, and the driver goes by the text.
#[test]
fn ptx_is_for_the_target_that_its_text_names() {
    for (text, expected) in [
        (".version 8.3\n.target sm_90a\n.address_size 64\n", "compute_90a x1"),
        (".version 8.8\n.target sm_90f, texmode_independent\n", "compute_90f x1"),
        (".version 8.3\n.target sm_90\n.address_size 64\n", "compute_90 x1"),
        (".version 8.3\n.target sm_90and\n", "compute_90 x1"),
        (".version 8.3\n.target sm_80a\n", "compute_90 x1"),
        (".version 8.3\n.target sm_90a", "compute_90 x1"),
    ] {
        let bytes = container(&[entry(1, 90, 0x11, text.as_bytes())]);
        assert_eq!(targets(&read(&bytes).unwrap()), [expected], "{text}");
    }
}

#[test]
fn the_magic_alone_is_not_a_container() {
    let mut data = vec![0; 64];
    data[8..12].copy_from_slice(&[0x50, 0xED, 0x55, 0xBA]);
    let binary = read(&elf_library(&[(".rodata", &data)])).unwrap();
    assert!(binary.modules.is_empty() && binary.damage.is_empty());
}

#[test]
fn unknown_entries_are_counted_and_the_rest_is_read() {
    let strange = entry(0x40, 90, 0x8000_0000, &[1; 16]);
    let binary = read(&container(&[strange, cubin_entry(90, 0)])).unwrap();
    assert_eq!(targets(&binary), ["sm_90 x1", "unknown_90 x1"]);
    let unknown = binary.unknown();
    assert_eq!((unknown["kind 0x40"], unknown["flags 0x80000000"]), (1, 1));
}

#[test]
fn code_for_a_number_that_is_not_an_architecture_still_has_to_be_loaded() {
    for number in [0, 7, 2_560, u32::MAX] {
        let binary = read(&container(&[cubin_entry(number, 0)])).unwrap();
        assert_eq!(targets(&binary), [format!("unknown_{number} x1")]);
        assert_eq!(binary.targets(), [Some(ModuleTargets::default())]);
    }
}

fn damage(bytes: &[u8]) -> String {
    match read(bytes) {
        Err(ReadError::Damaged(damage)) => damage.to_string(),
        Ok(binary) => binary.damage.first().map(ToString::to_string).unwrap_or_default(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn corruptions_are_reported_with_their_offset() {
    let good = container(&[cubin_entry(75, 0), cubin_entry(90, 0)]);
    let with = |at: usize, bytes: &[u8]| {
        let mut lie = good.clone();
        lie[at..at + bytes.len()].copy_from_slice(bytes);
        lie
    };
    assert!(damage(&good[..12]).starts_with("at offset 0x0: truncated container header"));
    assert!(damage(&good[..40]).starts_with("at offset 0x8: container claims"));
    assert!(damage(&with(8, &u64::MAX.to_le_bytes())).starts_with("at offset 0x8: container claims"));
    assert!(damage(&with(4, &[9, 0])).starts_with("at offset 0x4: unsupported container version 9"));
    // The header size of the first entry, then its payload size.
    assert!(
        damage(&with(20, &8_u32.to_le_bytes()))
            .starts_with("at offset 0x10: entry claims a header of 8 bytes")
    );
    assert!(damage(&with(20, &u32::MAX.to_le_bytes())).starts_with("at offset 0x10: entry claims"));
    assert!(damage(&with(24, &u64::MAX.to_le_bytes())).starts_with("at offset 0x10: entry claims"));
    // An entry that overlaps the next one leaves a remainder that is not an entry.
    let second = 16 + 64 + 8;
    assert!(damage(&with(24, &16_u64.to_le_bytes())).contains(&format!("{:#x}", second + 8)));
    assert!(damage(&with(8, &100_u64.to_le_bytes())).contains("truncated"));
}

#[test]
fn overlapping_sections_are_reported_with_their_offset() {
    let code = container(&[entry(2, 90, 0x11, &container(&[cubin_entry(75, 0)]))]);
    let mut bytes = elf_library(&[(".nv_fatbin", &code), (".lrodata", &[0; 8])]);
    // The header of the second section now points into the container of the first one.
    let table = usize::try_from(u64::from_le_bytes(bytes[40..48].try_into().unwrap())).unwrap();
    let inside = 4096 + 16 + 64;
    for (field, value) in [(16, inside), (24, inside), (32, 96)] {
        let at = table + 2 * 64 + field;
        bytes[at..at + 8].copy_from_slice(&u64::try_from(value).unwrap().to_le_bytes());
    }
    assert_eq!(damage(&bytes), "at offset 0x1050: container overlaps the one at offset 0x1000");
}

#[test]
fn a_corrupt_group_is_reported_with_its_offset() {
    let mut bytes = container(&[group(&[75, 90])]);
    assert_eq!(targets(&read(&bytes).unwrap()), ["sm_75 x1", "sm_90 x1"]);
    bytes[16 + 64..16 + 68].copy_from_slice(&9_u32.to_le_bytes());
    assert_eq!(damage(&bytes), "at offset 0x10: group claims 9 members, but its header ends after 2");
}

#[test]
fn a_payload_that_claims_too_much_is_rejected_without_allocating() {
    // LZ4 and zstd payloads that claim a terabyte.
    for flag in [0x2000_u64, 0x8000] {
        let mut bytes = container(&[entry(2, 90, flag, &[0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0])]);
        bytes[16 + 16..16 + 20].copy_from_slice(&8_u32.to_le_bytes());
        bytes[16 + 56..16 + 64].copy_from_slice(&(1_u64 << 40).to_le_bytes());
        let binary = read(&bytes).unwrap();
        let error = binary.modules[0].entries[0].payload(&bytes).unwrap_err().to_string();
        assert!(error.starts_with("at offset 0x50:"), "{error}");
    }
}

#[test]
fn unsupported_files_are_rejected() {
    assert_eq!(read(b"#!/bin/sh\n").unwrap_err(), ReadError::Unknown);
    assert!(damage(b"\x7fELF\x02\x01\x01").contains("invalid ELF file"));
    assert!(matches!(read(b""), Err(ReadError::Unknown)));
}

#[test]
fn the_sentence_summarizes_the_coverage() {
    let of = |name: &str| Coverage::of(&read(&fixture(name)).unwrap()).sentence();
    assert_eq!(of("library.so"), "covers sm_75 sm_90; no PTX: nothing newer than sm_90 will run");
    assert_eq!(
        of("default.fatbin"),
        "covers sm_75 sm_90 sm_100; newer GPUs compile its compute_90 PTX on first use"
    );
    assert_eq!(of("ptx-options.fatbin"), "only PTX (compute_80): GPUs compile it on first use");
    assert!(
        of("variants.fatbin").ends_with("no PTX: nothing newer than sm_120 will run"),
        "PTX for 9.0a runs on no other GPU"
    );
    assert_eq!(
        of("device-linked-ptx.so"),
        "covers sm_75 sm_90; newer GPUs compile its compute_75 PTX on first use",
        "PTX of device-linked parts counts: the driver links it again"
    );
    assert_eq!(
        of("partly-device-linked.so"),
        "covers sm_75 sm_90; newer GPUs compile its compute_75 PTX on first use, but 1 of 2 modules have none",
    );
}

#[test]
fn ptx_of_device_linked_parts_belongs_only_to_the_linked_module() {
    let ptx = |name: &str| -> Vec<usize> {
        let targets = read(&fixture(name)).unwrap().targets();
        targets.iter().flatten().map(|module: &ModuleTargets| module.ptx.len()).collect()
    };
    assert_eq!(ptx("device-linked.so"), [0], "its parts have no PTX");
    assert_eq!(ptx("device-linked-ptx.so"), [1]);
    // As in libmxnet.so, where a static NCCL was device-linked and 197 modules were not.
    assert_eq!(ptx("partly-device-linked.so"), [0, 1]);
}

#[test]
fn device_linked_modules_are_found_without_addresses_in_the_table() {
    // lld leaves the addresses to relocations: the same file with zeros instead.
    let mut bytes = fixture("partly-device-linked.so");
    let magic = 0x4662_43B1_u32.to_le_bytes();
    let entries: Vec<usize> = (0..bytes.len() - 24).filter(|at| bytes[*at..*at + 4] == magic).collect();
    assert_eq!(entries.len(), 3, "a plain module, a part, and the linked one");
    for at in entries {
        bytes[at + 8..at + 24].fill(0);
    }
    let linked: Vec<bool> = read(&bytes).unwrap().modules.iter().map(|module| module.device_linked).collect();
    assert_eq!(linked, [false, true]);
}

proptest! {
    #[test]
    fn no_input_causes_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        read(&bytes).ok();
        read(&[&[0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0], &bytes[..]].concat()).ok();
        Cubin::parse(&bytes);
    }

    #[test]
    fn no_corruption_causes_a_panic(which in 0..4_usize, at in 0..20_000_usize, byte: u8, cut in 0..3000_usize) {
        let mut bytes = fixture(["concat.fatbin", "library.so", "compress-size.fatbin", "archive.a"][which]);
        let length = bytes.len();
        bytes[at % length] = byte;
        bytes.truncate(length - cut % length);
        if let Ok(binary) = read(&bytes) {
            for module in &binary.modules {
                module.has_kernels(&bytes);
                for entry in &module.entries {
                    entry.payload(&bytes).ok();
                }
            }
        }
    }
}
