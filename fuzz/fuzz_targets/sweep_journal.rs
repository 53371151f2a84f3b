//! Any bytes as the journal of a sweep: no panic; what is read is a prefix that reads the same again, and replaying it
//! either fails or leads to a sweep that knows what to do next.
#![no_main]

use std::path::Path;

use cudock_sweep::Sweep;
use cudock_sweep::journal::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("journal");
    let Ok(parsed) = parse(path, bytes) else { return };
    let whole = bytes.get(..parsed.length).expect("a prefix");
    let again = parse(path, whole).expect("whole lines are read again");
    // Not a number differs from itself.
    assert_eq!(format!("{parsed:?}"), format!("{again:?}"));
    if let Ok(sweep) = Sweep::replay(&parsed.records) {
        let now = sweep.last_event();
        let _ = (sweep.next(now), sweep.wake_at(now), sweep.cost(now), sweep.ranked());
        for trial in sweep.trials() {
            let _ = trial.ending(&sweep.plan().objectives);
        }
    }
});
