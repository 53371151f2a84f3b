//! Slims anything that can be read: the result can be read, too, has a part of the entries in their order, and still runs on
//! the target.
#![no_main]

use cudock_facts::version::Capability;
use cudock_fatbin::{Binary, CodeTarget, EntryKind, FatbinEntry, Module, in_memory, plan, read};
use libfuzzer_sys::fuzz_target;

/// The properties of an entry that must not change; its offset may.
type Signature = (EntryKind, Option<CodeTarget>, u64, u64, u64);

fn entries(module: &Module) -> Vec<Signature> {
    let entries = module.entries.iter().filter(|entry| !entry.is_placeholder());
    entries.map(|entry| (entry.kind, entry.target, entry.flags, entry.stored, entry.bytes)).collect()
}

fn runs_on(module: &Module, gpu: Capability) -> bool {
    let code = |entry: &FatbinEntry| {
        entry.target.into_iter().chain(entry.members.iter().map(|member| member.target)).any(|code| code.runs_on(gpu))
    };
    module.entries.iter().any(code)
}

fn check(before: &Binary, after: &Binary, gpu: Capability) {
    assert_eq!(before.modules.len(), after.modules.len());
    for (before, after) in before.modules.iter().zip(&after.modules) {
        assert_eq!(runs_on(before, gpu), runs_on(after, gpu), "{before:?}");
        let all = entries(before);
        let kept = entries(after);
        let mut rest = all.iter();
        assert!(kept.iter().all(|entry| rest.any(|known| known == entry)), "{kept:?} of {all:?}");
        let is_other = |(kind, target, ..): &&Signature| {
            matches!(kind, EntryKind::Ir | EntryKind::Unknown(_)) || matches!(target, Some(CodeTarget::Ir(_)))
        };
        assert_eq!(kept.iter().filter(is_other).count(), all.iter().filter(is_other).count());
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (choice, bytes) = input;
    let Ok(before) = read(bytes) else { return };
    // Containers that overlap or are truncated are not rewritten entry by entry.
    if !before.damage.is_empty() {
        return;
    }
    let gpu = [Capability::new(7, 5), Capability::new(8, 0), Capability::new(9, 0), Capability::new(10, 0)]
        [usize::from(choice % 4)];
    let slim_plan = plan(&before, bytes, &[gpu], &[]);
    for compact in [false, true] {
        let Ok(slim) = in_memory(bytes, &slim_plan, compact) else { continue };
        let after = read(&slim).expect("a slimmed file can be read");
        check(&before, &after, gpu);
        assert!(plan(&after, &slim, &[gpu], &[]).patches.is_empty(), "slimming twice changes nothing more");
    }
});
