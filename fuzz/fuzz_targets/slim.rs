//! Slimming anything that reads: the result reads too, and lists exactly the entries that were kept.
#![no_main]

use cudock_fatbin::{Binary, EntryKind, FatbinEntry, GpuCode, in_memory, plan, read};
use libfuzzer_sys::fuzz_target;

/// What of an entry must not change. Its offset may.
type Kept = (u64, Vec<(EntryKind, String, u64, u64, u64)>);

fn entries(binary: &Binary, keeps: impl Fn(&FatbinEntry) -> bool) -> Vec<Kept> {
    let of = |entry: &FatbinEntry| {
        let arch = entry.arch.map_or_else(String::new, |arch| arch.to_string());
        (entry.kind, arch, entry.flags, entry.stored, entry.bytes)
    };
    let modules = binary.modules.iter().map(|module| {
        let kept = module.entries.iter().filter(|entry| !entry.is_placeholder() && keeps(entry)).map(of).collect();
        (module.entries.len().min(1) as u64, kept)
    });
    modules.collect()
}

fuzz_target!(|input: (u8, &[u8])| {
    let (choice, bytes) = input;
    let Ok(before) = read(bytes) else { return };
    // Containers that overlap, or are broken off, are not slimmed entry by entry alike.
    if !before.damage.is_empty() {
        return;
    }
    let wanted = [75, 80, 90, 100][usize::from(choice % 4)];
    let rank = |_: usize, code: GpuCode| match code {
        GpuCode::Sass(arch) => (arch.number == wanted).then_some(0),
        GpuCode::Ptx(arch) => (arch.number <= wanted).then_some(0),
    };
    let plan = plan(&before, bytes, 1, &rank);
    let sass = |entry: &FatbinEntry| match entry.kind {
        EntryKind::Cubin => entry.arch.is_some_and(|arch| arch.number == wanted),
        EntryKind::Group => entry.members.iter().any(|member| member.arch.number == wanted),
        _ => false,
    };
    let judged = |entry: &FatbinEntry| matches!(entry.kind, EntryKind::Cubin | EntryKind::Ptx | EntryKind::Group) && !entry.is_lto();
    let expected: Vec<Kept> = before
        .modules
        .iter()
        .map(|module| {
            let has_sass = module.entries.iter().any(|entry| judged(entry) && sass(entry));
            let keeps = |entry: &FatbinEntry| {
                !judged(entry)
                    || sass(entry)
                    || !has_sass && entry.kind == EntryKind::Ptx && entry.arch.is_some_and(|arch| arch.number <= wanted)
            };
            let one = Binary { modules: vec![module.clone()], ..before.clone() };
            entries(&one, keeps).remove(0)
        })
        .collect();
    for compact in [false, true] {
        let Ok(slim) = in_memory(bytes, &plan, compact) else { continue };
        let after = read(&slim).expect("what was slimmed still reads");
        assert_eq!(entries(&after, |_| true), expected, "compact: {compact}");
    }
});
