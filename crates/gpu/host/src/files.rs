/// A file system to read: of a machine, a directory tree or an image. Paths start with a slash.
pub trait Files {
    /// The text of a file; invalid UTF-8 is replaced.
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
