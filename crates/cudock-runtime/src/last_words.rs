//! Why a container did not come to be, in libcontainer's own words.
//!
//! What it returns says at which step it failed and not why; the why it logs, and in one of the processes it forked. So
//! its log of errors goes to a file in memory that those processes share with us.

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

/// More than this is not read back.
const LONGEST: u64 = 16 << 10;

static WORDS: OnceLock<Option<File>> = OnceLock::new();

/// From now on errors of libcontainer are kept, and those kept before are forgotten.
pub(crate) fn listen() {
    let file = WORDS.get_or_init(|| {
        let memory = memfd_create("last-words", MemfdFlags::CLOEXEC).ok()?;
        tracing::subscriber::set_global_default(Listener).ok()?;
        Some(File::from(memory))
    });
    if let Some(file) = file {
        let _ = ftruncate(file.as_fd(), 0);
        let _ = (&*file).seek(SeekFrom::Start(0));
    }
}

/// The first error that was kept: those after it follow from it.
pub(crate) fn first() -> Option<String> {
    let mut file = WORDS.get()?.as_ref()?;
    file.seek(SeekFrom::Start(0)).ok()?;
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    text.lines().next().map(str::to_owned).filter(|line| !line.is_empty())
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        *about.level() == Level::ERROR
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::ERROR)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        if let Some(mut file) = WORDS.get().and_then(Option::as_ref) {
            // At its end, wherever the processes that share the place stand.
            let _ = file.seek(SeekFrom::End(0));
            let _ = writeln!(file, "{}{}", line.message.replace('\n', " "), line.rest.replace('\n', " "));
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

/// An event in one line.
#[derive(Default)]
struct Line {
    message: String,
    rest: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            // Writing to a String cannot fail.
            let _ = write!(self.rest, ", {}: {value:?}", field.name());
        }
    }
}
