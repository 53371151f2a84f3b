//! Common to the requests and responses of all services: names, amounts, templates, and how they are read.

pub(crate) mod amounts;
pub(crate) mod names;
pub(crate) mod read;
pub(crate) mod request;
pub(crate) mod template;
