//! Which versions change when a project is locked anew.

/// Which versions may change when a project is locked anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upgrade {
    /// Only those that no longer fit.
    No,
    All,
    Packages(Vec<String>),
}
