//! Captures the error log of libcontainer.
//!
//! Its error values name the step that failed, but the reason is only logged, by one of the processes it forks. So its error
//! log goes to a memory file that those processes share.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

const MAX_BYTES: u64 = 16 << 10;

static CAPTURED: OnceLock<Option<File>> = OnceLock::new();

/// Captures errors from now on, and discards earlier ones.
pub(crate) fn start() {
    let file = CAPTURED.get_or_init(|| {
        let memory = memfd_create("error-log", MemfdFlags::CLOEXEC).ok()?;
        tracing::subscriber::set_global_default(ErrorCapture).ok()?;
        Some(File::from(memory))
    });
    if let Some(file) = file {
        let _ = ftruncate(file.as_fd(), 0);
        let _ = (&*file).seek(SeekFrom::Start(0));
    }
}

/// The first captured error; later ones are consequences of it.
pub(crate) fn first() -> Option<String> {
    let mut file = CAPTURED.get()?.as_ref()?;
    file.seek(SeekFrom::Start(0)).ok()?;
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    text.lines().next().map(str::to_owned).filter(|line| !line.is_empty())
}

struct ErrorCapture;

impl Subscriber for ErrorCapture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::ERROR)
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = EventText::default();
        event.record(&mut text);
        if let Some(mut file) = CAPTURED.get().and_then(Option::as_ref) {
            // The processes that share the file also share its offset.
            let _ = file.seek(SeekFrom::End(0));
            let _ = writeln!(file, "{}{}", text.message.replace('\n', " "), text.fields.replace('\n', " "));
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct EventText {
    message: String,
    fields: String,
}

impl Visit for EventText {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            // Writing to a String cannot fail.
            let _ = write!(self.fields, ", {}: {value:?}", field.name());
        }
    }
}
