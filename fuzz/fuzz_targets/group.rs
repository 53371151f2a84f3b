//! Any text as a container group: no panic, and every place lies in the file.
#![no_main]

use cudock_group::{Span, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let places: Vec<Span> = match read(text) {
        Ok(reading) => reading.notes.iter().map(|note| note.span).collect(),
        Err(error) => {
            let _ = error.to_string();
            assert!(!error.faults.is_empty());
            error.faults.iter().map(|fault| fault.span).collect()
        }
    };
    for span in places {
        assert!(span.line >= 1 && span.column >= 1, "{span:?}");
        assert!(text.get(span.bytes()).is_some(), "{span:?}");
    }
});
