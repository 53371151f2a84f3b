//! Any text as a container group: no panic, and every place lies in the file.
#![no_main]

use cudock_group::{GroupError, Span, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let places: Vec<Span> = match read(text) {
        Ok(reading) => {
            assert_eq!(reading.printable(text).len(), text.len());
            reading.notes.iter().map(|note| note.span).collect()
        }
        Err(error) => {
            assert_eq!(error.printable(text).len(), text.len());
            let _ = error.to_string();
            let GroupError::Faulty { faults, notes, .. } = &error;
            assert!(!faults.is_empty());
            faults.iter().map(|fault| fault.span).chain(notes.iter().map(|note| note.span)).collect()
        }
    };
    for span in places {
        assert!(span.line >= 1 && span.column >= 1, "{span:?}");
        assert!(text.get(span.bytes()).is_some(), "{span:?}");
    }
});
