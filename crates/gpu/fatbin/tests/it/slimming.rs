//! What slimming keeps, removes and leaves in place.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use cudock_facts::version::Capability;
use cudock_fatbin::{
    CodeTarget, SlimError, SlimJob, SlimOutput, SlimPlan, Slimmed, in_memory, plan, read, slim,
};

use crate::build::{container, cubin_entry, elf_library, entry, group, ptx_entry};

const FAMILY: u64 = 0x20_0000;
const SPECIFIC: u64 = 0x10_0000;

fn planned(bytes: &[u8], gpus: &[u16]) -> SlimPlan {
    let targets: Vec<Capability> = gpus.iter().map(|gpu| Capability::from_number(*gpu).unwrap()).collect();
    plan(&read(bytes).unwrap(), bytes, &targets, &[])
}

/// The targets of a file after slimming it for these GPUs.
fn kept(bytes: &[u8], gpus: &[u16]) -> Vec<String> {
    let slim = in_memory(bytes, &planned(bytes, gpus), false).unwrap();
    assert_eq!(slim.len(), bytes.len(), "a zeroed file keeps its length");
    let binary = read(&slim).unwrap();
    assert!(binary.damage.is_empty(), "{:?}", binary.damage);
    binary.lines().iter().map(|line| line.target.to_string()).collect()
}

#[test]
fn code_that_a_target_can_load_stays_and_the_rest_is_removed() {
    let bytes = container(&[cubin_entry(75, 0), cubin_entry(80, 0), cubin_entry(86, 0), cubin_entry(90, 0)]);
    assert_eq!(kept(&bytes, &[75]), ["sm_75"]);
    assert_eq!(kept(&bytes, &[75, 90]), ["sm_75", "sm_90"]);
}

#[test]
fn only_the_closest_suitable_sass_stays() {
    let bytes = container(&[cubin_entry(70, 0), cubin_entry(75, 0), cubin_entry(80, 0), cubin_entry(86, 0)]);
    assert_eq!(kept(&bytes, &[75]), ["sm_75"], "a T4 never loads sm_70 beside sm_75");
    assert_eq!(kept(&bytes, &[70, 75]), ["sm_70", "sm_75"], "a V100 does");
    assert_eq!(kept(&bytes, &[86]), ["sm_86"]);
    assert_eq!(kept(&bytes, &[80, 89]), ["sm_80", "sm_86"]);
    let bytes = container(&[cubin_entry(70, 0), ptx_entry(75, 0)]);
    assert_eq!(kept(&bytes, &[75]), ["sm_70"], "machine code before PTX, as ever");
    let bytes = container(&[cubin_entry(90, 0), cubin_entry(90, SPECIFIC)]);
    assert_eq!(kept(&bytes, &[90]), ["sm_90", "sm_90a"], "of the same rank, both stay");
}

#[test]
fn ptx_stays_only_without_suitable_sass() {
    let bytes = container(&[cubin_entry(75, 0), ptx_entry(75, 0)]);
    assert_eq!(kept(&bytes, &[75]), ["sm_75"]);
    assert_eq!(kept(&bytes, &[90]), ["compute_75"]);
    assert_eq!(kept(&bytes, &[75, 90]), ["sm_75", "compute_75"]);
}

#[test]
fn specific_and_family_code_follow_their_rules() {
    let bytes = container(&[cubin_entry(90, SPECIFIC), cubin_entry(100, FAMILY), cubin_entry(100, SPECIFIC)]);
    assert_eq!(kept(&bytes, &[90]), ["sm_90a"]);
    assert_eq!(kept(&bytes, &[103]), ["sm_100f"]);
}

#[test]
fn a_group_stays_whole_if_one_member_is_needed() {
    let bytes = container(&[group(&[75, 90]), ptx_entry(90, 0)]);
    assert_eq!(kept(&bytes, &[90]), ["sm_75", "sm_90"]);
    assert_eq!(kept(&bytes, &[100]), ["compute_90"]);
}

#[test]
fn unknown_code_stays() {
    let ir = entry(8, 90, 0x1_0011, &[1; 32]);
    let strange = entry(0x40, 90, 0x11, &[1; 8]);
    let bytes = container(&[ir, strange, cubin_entry(75, 0)]);
    assert_eq!(kept(&bytes, &[100]), ["lto_90", "unknown_90"]);
}

#[test]
fn a_module_for_other_gpus_is_emptied_and_stays_a_container() {
    let bytes = container(&[cubin_entry(120, 0), cubin_entry(100, 0)]);
    let plan = planned(&bytes, &[75]);
    assert_eq!(plan.after, 0);
    let slim = in_memory(&bytes, &plan, false).unwrap();
    let binary = read(&slim).unwrap();
    assert_eq!(binary.modules.len(), 1);
    assert!(binary.lines().is_empty());
    // A second run has nothing to do.
    assert!(planned(&slim, &[75]).patches.is_empty());
}

#[test]
fn kept_payloads_are_unchanged() {
    let bytes =
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/compress-size.fatbin")).unwrap();
    let payload = |bytes: &[u8], target: &str| -> Vec<u8> {
        let binary = read(bytes).unwrap();
        let mut entries = binary.modules.iter().flat_map(|module| &module.entries);
        let target = CodeTarget::Sass(target.parse().unwrap());
        let entry = entries.find(|entry| entry.target == Some(target)).unwrap();
        entry.payload(bytes).unwrap().into_owned()
    };
    let slim = in_memory(&bytes, &planned(&bytes, &[90]), false).unwrap();
    assert!(payload(&slim, "sm_90") == payload(&bytes, "sm_90"));
}

/// A library whose code fills many pages: three modules with two targets each.
fn large_library() -> Vec<u8> {
    let big = |arch: u32| entry(2, arch, 0x11, &vec![u8::try_from(arch).unwrap(); 40_000]);
    let modules: Vec<u8> = (0..3)
        .flat_map(|_| {
            let mut bytes = container(&[big(75), big(90)]);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            bytes
        })
        .collect();
    elf_library(&[(".rodata", b"before"), (".nv_fatbin", &modules), (".data", b"behind the code")])
}

#[test]
fn a_compacted_library_is_smaller_and_no_address_moves() {
    let bytes = large_library();
    let plan = planned(&bytes, &[75]);
    let slim = in_memory(&bytes, &plan, true).unwrap();
    assert!(slim.len() < bytes.len() - 100_000, "{} of {}", slim.len(), bytes.len());
    let targets: Vec<String> =
        read(&slim).unwrap().lines().iter().map(|line| format!("{} x{}", line.target, line.count)).collect();
    assert_eq!(targets, ["sm_75 x3"]);
    // In memory, both are the same except for what was removed.
    let zeroed = in_memory(&bytes, &plan, false).unwrap();
    assert!(memory(&slim) == memory(&zeroed));
}

/// The memory image of a file: its segments at their addresses, with zeros in between.
fn memory(bytes: &[u8]) -> Vec<u8> {
    let number = |at: usize, size: usize| {
        bytes[at..at + size].iter().rev().fold(0_usize, |sum, byte| sum * 256 + usize::from(*byte))
    };
    let mut memory = Vec::new();
    for index in 0..number(56, 2) {
        let header = number(32, 8) + index * 56;
        if number(header, 4) != 1 {
            continue;
        }
        let (offset, address) = (number(header + 8, 8), number(header + 16, 8));
        let (file_size, memory_size) = (number(header + 32, 8), number(header + 40, 8));
        assert_eq!(offset % 4096, address % 4096, "a segment that cannot be mapped");
        assert!(memory.len() <= address, "segments are in order and do not overlap");
        memory.resize(address, 0);
        memory.extend(&bytes[offset..offset + file_size]);
        memory.resize(address + memory_size, 0);
    }
    // The headers in the first page differ, because they contain file offsets.
    memory.drain(..4096);
    memory
}

#[test]
fn programs_signed_files_and_appended_data_are_not_compacted() {
    let bytes = large_library();
    let plan = planned(&bytes, &[75]);
    let error = |bytes: &[u8]| in_memory(bytes, &plan, true).unwrap_err().to_string();
    let mut appended = bytes.clone();
    appended.extend([1; 64]);
    assert!(error(&appended).contains("64 bytes after its end"), "{}", error(&appended));
    let mut program = bytes.clone();
    program[16] = 2;
    assert!(error(&program).contains("not a shared library"));
    assert!(error(&container(&[cubin_entry(75, 0)])).contains("not a shared library"));
}

/// A job for a T4.
fn job(compact: bool) -> SlimJob<'static> {
    const TARGETS: &[Capability] = &[Capability::new(7, 5)];
    SlimJob { targets: TARGETS, gpus: &[], compact }
}

fn slim_all(input: &Path, output: SlimOutput<'_>) -> Result<Vec<Slimmed>, SlimError> {
    let mut reports = Vec::new();
    slim(input, output, &job(false), &mut |file| reports.push(file))?;
    Ok(reports)
}

#[test]
fn a_directory_is_copied_completely_with_links_and_modes() {
    use std::os::unix::fs::PermissionsExt;
    let (input, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let library = input.path().join("lib/libcode.so.1");
    std::fs::create_dir_all(library.parent().unwrap()).unwrap();
    std::fs::write(&library, large_library()).unwrap();
    std::fs::set_permissions(&library, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(input.path().join("readme.txt"), "text").unwrap();
    std::os::unix::fs::symlink("libcode.so.1", input.path().join("lib/libcode.so")).unwrap();
    let reports = slim_all(input.path(), SlimOutput::To(output.path())).unwrap();
    let slimmed = output.path().join("lib/libcode.so.1");
    assert_eq!(reports.len(), 1);
    assert_eq!(std::fs::read_to_string(output.path().join("readme.txt")).unwrap(), "text");
    assert_eq!(
        std::fs::read_link(output.path().join("lib/libcode.so")).unwrap().to_str(),
        Some("libcode.so.1")
    );
    let (before, after) = (std::fs::metadata(&library).unwrap(), std::fs::metadata(&slimmed).unwrap());
    assert_eq!((after.len(), after.mode() & 0o777), (before.len(), 0o755));
    assert!(
        after.blocks() < before.blocks(),
        "removed code is a hole: {} of {}",
        after.blocks(),
        before.blocks()
    );
    assert!(std::fs::read(&library).unwrap() == large_library(), "the input is untouched");
    assert!(std::fs::read_dir(slimmed.parent().unwrap()).unwrap().count() == 2, "nothing is left beside");
}

#[test]
fn a_slimmed_wheel_is_valid() {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) =
        (directory.path().join("code-1.0-py3-none-any.whl"), directory.path().join("slim.whl"));
    let library = large_library();
    let hash = |bytes: &[u8]| {
        use base64::Engine;
        use sha2::Digest;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(sha2::Sha256::digest(bytes))
    };
    let record = format!(
        "code/lib.so,sha256={},{}\ncode/__init__.py,sha256={},3\ncode-1.0.dist-info/RECORD,,\n",
        hash(&library),
        library.len(),
        hash(b"x=1")
    );
    let mut wheel = zip::ZipWriter::new(std::fs::File::create(&input).unwrap());
    let options = zip::write::SimpleFileOptions::default();
    for (name, content) in [
        ("code/lib.so", &library[..]),
        ("code/__init__.py", b"x=1"),
        ("code-1.0.dist-info/RECORD", record.as_bytes()),
    ] {
        wheel.start_file(name, options).unwrap();
        wheel.write_all(content).unwrap();
    }
    wheel.finish().unwrap();
    for compact in [false, true] {
        slim(&input, SlimOutput::To(&output), &job(compact), &mut |file| {
            assert!(file.warning.is_none(), "{:?}", file.warning);
        })
        .unwrap();
        let mut archive = zip::ZipArchive::new(std::fs::File::open(&output).unwrap()).unwrap();
        let mut content = |name: &str| {
            let mut bytes = Vec::new();
            archive.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
            bytes
        };
        let slimmed = content("code/lib.so");
        assert_eq!(read(&slimmed).unwrap().lines().len(), 1);
        let record = String::from_utf8(content("code-1.0.dist-info/RECORD")).unwrap();
        assert!(
            record.contains(&format!("code/lib.so,sha256={},{}\n", hash(&slimmed), slimmed.len())),
            "{record}"
        );
        assert!(
            record.contains(&format!("code/__init__.py,sha256={},3\n", hash(&content("code/__init__.py")))),
            "{record}"
        );
    }
    assert!(std::fs::metadata(&output).unwrap().len() < std::fs::metadata(&input).unwrap().len() + 1000);
}

#[test]
fn a_signed_file_is_not_changed_and_the_reason_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("in.so"), directory.path().join("out.so"));
    let mut bytes = large_library();
    bytes.extend(b"~Module signature appended~\n");
    std::fs::write(&input, &bytes).unwrap();
    let reports = slim_all(&input, SlimOutput::To(&output)).unwrap();
    assert!(reports[0].warning.as_ref().unwrap().contains("signed"));
    assert!(std::fs::read(&output).unwrap() == bytes);
}

/// A directory with a library, a symlink and a hard link to it, a symlink to the outside, and a file outside.
fn linked_tree() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("in")).unwrap();
    fs::write(root.path().join("outside.so"), large_library()).unwrap();
    fs::write(root.path().join("in/libcode.so.1"), large_library()).unwrap();
    symlink("libcode.so.1", root.path().join("in/libcode.so")).unwrap();
    symlink("../outside.so", root.path().join("in/out.so")).unwrap();
    fs::hard_link(root.path().join("in/libcode.so.1"), root.path().join("in/same.so")).unwrap();
    root
}

#[test]
fn in_place_symlinks_are_kept_and_nothing_outside_is_changed() {
    let root = linked_tree();
    let tree = root.path().join("in");
    let reports = slim_all(&tree, SlimOutput::InPlace).unwrap();
    assert_eq!(reports.len(), 1, "one file, though it has two names and a link: {reports:?}");
    assert!(reports[0].warning.is_none(), "{:?}", reports[0].warning);
    assert_eq!(fs::read_link(tree.join("libcode.so")).unwrap(), Path::new("libcode.so.1"));
    assert_eq!(fs::read_link(tree.join("out.so")).unwrap(), Path::new("../outside.so"));
    assert!(fs::read(root.path().join("outside.so")).unwrap() == large_library());
    assert!(fs::read(tree.join("libcode.so.1")).unwrap() != large_library());
    let inode = |name: &str| fs::metadata(tree.join(name)).unwrap().ino();
    assert_eq!(inode("libcode.so.1"), inode("same.so"), "two names of one file stay that");
    assert_eq!(fs::read_dir(&tree).unwrap().count(), 4, "nothing is left beside");
}

#[test]
fn in_place_a_hard_link_outside_of_the_input_is_reported() {
    let root = linked_tree();
    fs::hard_link(root.path().join("in/libcode.so.1"), root.path().join("elsewhere.so")).unwrap();
    let reports = slim_all(&root.path().join("in"), SlimOutput::InPlace).unwrap();
    let warning = reports[0].warning.as_ref().unwrap();
    assert!(
        warning.contains("1 hard link(s) to this file outside of the input keep the old content"),
        "{warning}"
    );
    assert!(fs::read(root.path().join("elsewhere.so")).unwrap() == large_library());
}

#[test]
fn a_named_symlink_stands_for_its_target() {
    let root = linked_tree();
    let link = root.path().join("in/libcode.so");
    let output = root.path().join("slim.so");
    slim_all(&link, SlimOutput::To(&output)).unwrap();
    assert!(fs::symlink_metadata(&output).unwrap().is_file());
    slim_all(&link, SlimOutput::InPlace).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read(&link).unwrap() == fs::read(&output).unwrap());
}

#[test]
fn a_copied_directory_keeps_hard_links_and_skips_special_files() {
    let root = linked_tree();
    let tree = root.path().join("in");
    let status = std::process::Command::new("mkfifo").arg(tree.join("pipe")).status().unwrap();
    assert!(status.success());
    let output = root.path().join("new/out");
    let reports = slim_all(&tree, SlimOutput::To(&output)).unwrap();
    let skipped: Vec<_> = reports.iter().filter(|file| file.path.ends_with("pipe")).collect();
    assert!(skipped[0].warning.as_ref().unwrap().contains("not copied: a FIFO"), "{skipped:?}");
    let inode = |name: &str| fs::metadata(output.join(name)).unwrap().ino();
    assert_eq!(inode("libcode.so.1"), inode("same.so"));
    assert!(!output.join("pipe").exists());
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3, "nothing is left beside the output");
}

#[test]
fn a_directory_is_written_completely_or_not_at_all() {
    let root = linked_tree();
    let tree = root.path().join("in");
    let output = root.path().join("out");
    fs::write(tree.join("zz.whl"), b"PK\x03\x04 and nothing of a zip file").unwrap();
    let error = slim_all(&tree, SlimOutput::To(&output)).unwrap_err();
    assert!(matches!(&error, SlimError::Read { path, .. } if path.ends_with("zz.whl")), "{error:?}");
    assert!(!output.exists());
    fs::remove_file(tree.join("zz.whl")).unwrap();
    fs::create_dir(&output).unwrap();
    fs::write(output.join("theirs"), "kept").unwrap();
    assert!(matches!(slim_all(&tree, SlimOutput::To(&output)), Err(SlimError::OutputNotEmpty { .. })));
    for inside in ["new", "not/there/yet"] {
        let error = slim_all(&tree, SlimOutput::To(&tree.join(inside))).unwrap_err();
        assert!(matches!(error, SlimError::OutputInside { .. }), "{inside}: {error:?}");
    }
}

#[test]
fn a_target_without_code_stops_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("code.so");
    fs::write(&file, large_library()).unwrap();
    let without_code = Capability::new(3, 7);
    let job = SlimJob { targets: &[Capability::new(7, 5), without_code], gpus: &[], compact: false };
    for output in [SlimOutput::InPlace, SlimOutput::DryRun, SlimOutput::To(&directory.path().join("out.so"))]
    {
        let error = slim(&file, output, &job, &mut |_| panic!("nothing is reported")).unwrap_err();
        assert!(matches!(error, SlimError::NoCode { target } if target == without_code), "{error:?}");
    }
    assert!(fs::read(&file).unwrap() == large_library());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}
