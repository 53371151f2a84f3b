//! Compressed cubins outside of containers, as cuBLASLt has them.

use cudock_facts::version::Capability;
use cudock_fatbin::{Binary, in_memory, plan, read};

use crate::build::{container, cubin_entry, elf_library};

/// The start of a cubin, and some code.
fn cubin(number: u32, abi_version: u8) -> Vec<u8> {
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0x41, abi_version];
    bytes.resize(64, 0);
    bytes[18..20].copy_from_slice(&190_u16.to_le_bytes());
    let flags = if abi_version >= 8 { number << 8 } else { number };
    bytes[48..52].copy_from_slice(&flags.to_le_bytes());
    bytes[52..54].copy_from_slice(&64_u16.to_le_bytes());
    bytes[58..60].copy_from_slice(&64_u16.to_le_bytes());
    bytes.extend((0..20_000_u32).flat_map(|word| word.wrapping_mul(2_654_435_761).to_le_bytes()));
    bytes
}

fn frame(content: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(content, 3).unwrap()
}

fn archs(binary: &Binary) -> Vec<String> {
    binary.bare_cubins.iter().map(|cubin| cubin.arch.to_string()).collect()
}

fn library() -> Vec<u8> {
    let mut data = Vec::new();
    for (number, abi) in [(75, 7), (90, 7), (90, 8), (120, 8)] {
        data.extend(frame(&cubin(number, abi)));
        data.extend(b"a name\0");
        data.resize(data.len().next_multiple_of(8), 0);
    }
    elf_library(&[(".nv_fatbin", &container(&[cubin_entry(75, 0), cubin_entry(90, 0)])), (".ldata", &data)])
}

#[test]
fn frames_are_listed_with_the_architecture_of_either_abi() {
    let binary = read(&library()).unwrap();
    assert_eq!(archs(&binary), ["sm_75", "sm_90", "sm_90", "sm_120"]);
    assert!(binary.bare_cubins.iter().all(|cubin| cubin.section == ".ldata" && cubin.bytes == 80_064));
    let lines: Vec<(String, u64)> =
        binary.lines().iter().map(|line| (line.target.to_string(), line.count)).collect();
    assert_eq!(lines, [("sm_75".into(), 2), ("sm_90".into(), 3), ("sm_120".into(), 1)]);
    assert_eq!(binary.sections().get(".ldata"), Some(&4));
    assert_eq!(binary.targets().len(), 2);
}

#[test]
fn frames_that_run_on_no_target_are_zeroed_and_nothing_else_changes() {
    let bytes = library();
    let binary = read(&bytes).unwrap();
    let hopper = [Capability::from_number(90).unwrap()];
    let gpus = [75, 90, 120].map(|number| Capability::from_number(number).unwrap());
    let plan = plan(&binary, &bytes, &hopper, &gpus);
    assert_eq!(plan.loadable, [2]);
    assert_eq!(plan.lost, [2, 0, 1]);
    assert_eq!(plan.removed.keys().collect::<Vec<_>>(), ["sm_120", "sm_75"]);
    let slimmed = in_memory(&bytes, &plan, false).unwrap();
    let after = read(&slimmed).unwrap();
    assert_eq!(archs(&after), ["sm_90", "sm_90"]);
    for cubin in &after.bare_cubins {
        let range =
            usize::try_from(cubin.offset).unwrap()..usize::try_from(cubin.offset + cubin.stored).unwrap();
        assert_eq!(slimmed[range.clone()], bytes[range]);
    }
    assert_eq!(slimmed.windows(7).filter(|window| window == b"a name\0").count(), 4);
    let compact = in_memory(&bytes, &plan, true).unwrap();
    assert!(compact.len() + 100_000 < bytes.len(), "{} of {}", compact.len(), bytes.len());
    assert_eq!(archs(&read(&compact).unwrap()), ["sm_90", "sm_90"]);
}

#[test]
fn a_frame_of_other_data_or_a_broken_one_is_not_a_cubin() {
    let whole = frame(&cubin(90, 8));
    let mut program = cubin(90, 8);
    program[18] = 62;
    let mut unknown = cubin(90, 8);
    unknown[49] = 0;
    let mut sizes = cubin(90, 8);
    sizes[58] = 40;
    for (name, data) in [
        ("text", frame(b"{\"kernels\": []}".repeat(100).as_slice())),
        ("a host program", frame(&program)),
        ("no architecture", frame(&unknown)),
        ("other table sizes", frame(&sizes)),
        ("cut", whole[..whole.len() / 2].to_vec()),
        ("only the magic", whole[..4].to_vec()),
        ("a short cubin", frame(&cubin(90, 8)[..40])),
    ] {
        let binary = read(&elf_library(&[(".data", &data)])).unwrap();
        assert!(binary.bare_cubins.is_empty(), "{name}: {:?}", binary.bare_cubins);
        assert!(!binary.has_code(), "{name}");
    }
}

#[test]
fn a_compressed_entry_of_a_container_is_not_a_bare_cubin() {
    let mut entry = cubin_entry(90, 0);
    let payload = frame(&cubin(90, 8));
    entry.truncate(64);
    entry[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    entry.extend(&payload);
    let binary = read(&elf_library(&[(".data", &container(&[entry]))])).unwrap();
    assert_eq!((binary.modules.len(), binary.bare_cubins.len()), (1, 0));
}

#[test]
fn many_frames_of_other_data_hide_no_container() {
    let mut data = [0x28, 0xB5, 0x2F, 0xFD, 0xFF, 0xFF, 0xFF, 0xFF].repeat(10_001);
    data.extend(container(&[cubin_entry(90, 0)]));
    let binary = read(&elf_library(&[(".data", &data)])).unwrap();
    assert_eq!((binary.modules.len(), binary.bare_cubins.len()), (1, 0));
}
