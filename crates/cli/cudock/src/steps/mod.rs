//! Steps that several verbs take. They print, and know nothing of arguments; rules are in libraries.

pub(crate) mod build;
pub(crate) mod cloud;
pub(crate) mod engine;
pub(crate) mod group_file;
pub(crate) mod images;
pub(crate) mod nvml;
pub(crate) mod pointer;
pub(crate) mod progress;
pub(crate) mod project;
pub(crate) mod runtime;
pub(crate) mod serve;
pub(crate) mod slim;
pub(crate) mod tables;
