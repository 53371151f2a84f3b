//! Lock files of Python projects.

pub(crate) mod poetry;
pub(crate) mod uv;
