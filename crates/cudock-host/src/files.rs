use std::path::Path;

use crate::root::Root;

/// A file system to read: of a machine, a directory tree or an image. Paths start with a slash.
pub trait Files {
    fn text(&self, path: &str) -> Option<String>;
    /// The names in a directory, sorted.
    fn names(&self, path: &str) -> Vec<String>;
    /// The path with all symlinks resolved; none if it does not exist.
    fn real(&self, path: &str) -> Option<String>;
    fn is_dir(&self, path: &str) -> bool;
    fn is_program(&self, path: &str) -> bool;

    fn exists(&self, path: &str) -> bool {
        self.real(path).is_some()
    }

    /// The first line of a file.
    fn line(&self, path: &str) -> Option<String> {
        Some(self.text(path)?.lines().next()?.trim().to_owned())
    }
}

impl Files for Root {
    fn text(&self, path: &str) -> Option<String> {
        Root::text(self, path)
    }

    fn names(&self, path: &str) -> Vec<String> {
        Root::names(self, path)
    }

    fn real(&self, path: &str) -> Option<String> {
        Root::real(self, path).as_deref().map(Path::to_string_lossy).map(std::borrow::Cow::into_owned)
    }

    fn is_dir(&self, path: &str) -> bool {
        Root::is_dir(self, path)
    }

    fn is_program(&self, path: &str) -> bool {
        Root::is_program(self, path)
    }
}
